"""What differs between two interpreters that do exactly the same.

These are left out of the comparison between interpreters, and said to be. Inside one
interpreter they are compared like everything else.
"""

from __future__ import annotations

__all__ = ["VARYING"]

_SET = "made from a set, in the order of the addresses of its elements"

VARYING = {
    "torch._dynamo.variables.builder:SourcelessBuilder._type_handlers": _SET,
    "torch._dynamo.variables.torch_function:banned_attrs": _SET,
    "torch._functorch.compilers:default_decompositions": _SET,
    "torch._inductor.decomposition:decompositions": _SET,
    "torch.jit._builtins:_builtin_table": "a table by the addresses of objects, of "
    "which some are gone and their addresses taken again",
    "typing:_overload_registry": "Python's own table of all overloads, the toolkit's "
    "and its libraries' as well",
    "torch.testing._internal.common_dtype:_all_mps_types": _SET,
}
"""By path, with the reason."""
