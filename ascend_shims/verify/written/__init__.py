"""What modules are, against what their sources define.

Runs inside the interpreter that is looked at, where the toolkit need not be
installed: loaded by path, with the standard library alone, and without running
anything of what it looks at.
"""
