"""Every patch and private dependence in somebody's code, found in its text.

Nothing is imported or run, neither of the code that is scanned nor of upstream.
"""
