"""A Triton backend called "cpu", for kernels that Triton's interpreter runs.

Shaped as Triton's discovery wants it (`compiler`, `driver`), but not announced
to it: a backend of this name in Triton's table, active or not, makes torch and
vLLM believe that kernels can be compiled for the CPU. So `register` adds it,
and only in processes that asked for the rig.
"""

from __future__ import annotations

__all__ = ["register"]


def register() -> bool:
    """Add the backend to Triton's table; True if Triton now has one called "cpu".

    Leaves another "cpu" backend alone, and stays away where a device's own
    driver is active: two active drivers are an error to Triton.
    """
    try:
        from triton.backends import Backend, backends
    except ImportError:
        return False
    if "cpu" in backends:
        return True
    if any(backend.driver.is_active() for backend in backends.values()):
        return False

    from .compiler import CPUBackend
    from .driver import CPUDriver

    backends["cpu"] = Backend(CPUBackend, CPUDriver)
    return True
