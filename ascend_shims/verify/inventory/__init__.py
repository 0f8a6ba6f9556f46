"""What a process holds of upstream, described so that two processes can be compared.

This package stands alone: it needs the standard library and nothing else, and the
rest of the toolkit not at all. `shims verify` loads it by its path in interpreters
that must not know the toolkit.
"""
