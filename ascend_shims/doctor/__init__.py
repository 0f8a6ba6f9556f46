"""Is everything here as shims need it, and what is to be done where not.

What is seen is one thing, what it means another. `looking` reads files, asks processes
and starts children, and makes frozen values of that; each module beside it is one
concern, and comes from such a value to findings without touching anything.
"""
