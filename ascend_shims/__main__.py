"""`python -m ascend_shims` is `shims`."""

from .cli import entry

entry()
