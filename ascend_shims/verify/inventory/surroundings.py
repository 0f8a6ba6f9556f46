"""What belongs to the process and to no module of upstream.

Import hooks, environment, logging, warnings, threads, open files, and what torch
keeps outside of Python: the kernels of its operators, its modes.
"""

from __future__ import annotations

import atexit
import builtins
import copyreg
import gc
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .limits import children, limits
from .parts import Derived
from .plain import digest
from .raw import is_module, namespace

__all__ = ["surroundings"]


def surroundings(roots: tuple[str, ...], answers: dict[str, str]) -> Derived:
    """All of it, by name. `answers` are added as they are."""
    found = dict(_python())
    found["sys.modules"] = _derived("modules", _other_modules(roots))
    found["builtins"] = _derived("namespace", namespace(builtins))
    found["os.environ"] = _derived("environment", dict(sorted(os.environ.items())))
    found["logging"] = _derived("logging", dict(_logging(roots)))
    found["torch operators"] = _derived("operators", dict(_operators()))
    found["torch state"] = _derived("state", dict(_torch_state()))
    found["torch seed"] = _torch_seed()
    found["answers"] = _derived("answers", answers)
    return _derived("process", found)


def _derived(kind: str, parts: dict[str, Any]) -> Derived:
    return Derived(kind, [*parts], [*parts.values()])


def _python() -> Iterator[tuple[str, Any]]:
    for name in ("meta_path", "path_hooks", "path"):
        yield f"sys.{name}", namespace(sys)[name]
    for name in ("excepthook", "unraisablehook", "displayhook", "breakpointhook"):
        yield f"sys.{name}", namespace(sys).get(name)
    for name in ("stdin", "stdout", "stderr"):
        yield f"sys.{name}", namespace(sys)[name]
    yield "sys.gettrace()", sys.gettrace()
    yield "sys.getprofile()", sys.getprofile()
    yield "sys.getrecursionlimit()", sys.getrecursionlimit()
    yield "sys.getswitchinterval()", sys.getswitchinterval()
    yield "warnings.filters", namespace(warnings)["filters"]
    yield "warnings.showwarning", namespace(warnings)["showwarning"]
    yield "warnings.formatwarning", namespace(warnings)["formatwarning"]
    yield "threading.excepthook", namespace(threading)["excepthook"]
    yield "threads", _derived("threads", _counted(_threads()))
    yield "open files", _derived("files", _counted(_files()))
    yield "child processes", _derived("processes", _counted(children()))
    yield "signal handlers", _derived("handlers", dict(_handlers()))
    yield "atexit callbacks", namespace(atexit)["_ncallbacks"]()
    yield "copyreg.dispatch_table", namespace(copyreg)["dispatch_table"]
    yield "gc.callbacks", gc.callbacks
    yield "gc.get_threshold()", repr(gc.get_threshold())
    yield "gc.isenabled()", gc.isenabled()
    yield "os.getcwd()", os.getcwd()  # noqa: PTH109
    yield "multiprocessing start method", _start_method()
    yield from limits()


def _start_method() -> Any:
    context = sys.modules.get("multiprocessing.context")
    if not is_module(context):
        return None
    return namespace(context)["_default_context"].get_start_method(allow_none=True)


def _counted(names: Iterator[str]) -> dict[str, Any]:
    count: dict[str, int] = {}
    for name in sorted(names):
        count[name] = count.get(name, 0) + 1
    return count


def _threads() -> Iterator[str]:
    for thread in threading.enumerate():
        yield re.sub(r"\d+", "n", thread.name)


def _files() -> Iterator[str]:
    """What the process has open; of what has no name, only the kind."""
    try:
        entries = list(Path("/proc/self/fd").iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name in ("0", "1", "2"):
            continue
        try:
            target = str(entry.readlink())
        except OSError:
            continue  # the directory that was just being read
        if not target.startswith("/proc/"):
            yield re.sub(r"\d+", "n", target)


def _handlers() -> Iterator[tuple[str, Any]]:
    for number in sorted(signal.valid_signals()):
        try:
            name = signal.Signals(number).name
        except ValueError:
            continue
        yield name, signal.getsignal(number)


def _other_modules(roots: tuple[str, ...]) -> dict[str, Any]:
    return {
        name: module
        for name, module in sorted(sys.modules.items())
        if name.partition(".")[0] not in roots
    }


def _logging(roots: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Loggers that are configured, and all of upstream's."""
    held = namespace(logging)
    yield "logging.lastResort", held["lastResort"]
    yield "logging.getLoggerClass()", held["_loggerClass"]
    yield "logging.getLogRecordFactory()", held["_logRecordFactory"]
    yield "logging.disable()", logging.root.manager.disable
    yield "root", _logger(logging.root)
    for name, logger in sorted(logging.root.manager.loggerDict.items()):
        if not isinstance(logger, logging.Logger):
            continue
        untouched = (
            logger.level == 0
            and logger.propagate
            and not logger.disabled
            and not logger.handlers
            and not logger.filters
        )
        if not untouched or name.partition(".")[0] in roots:
            yield name, _logger(logger)


def _logger(logger: logging.Logger) -> Derived:
    names = ("level", "propagate", "disabled", "handlers", "filters")
    # `getLevelName` and the like would ask; these are plain attributes.
    held = {name: logger.__dict__[name] for name in names}
    return _derived("logger", {**held, "class": type(logger)})


_MODES = (
    "get_default_dtype",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "_get_deterministic_algorithms",
    "_get_privateuse1_backend_name",
    "_len_torch_dispatch_stack",
    "_len_torch_function_stack",
    "_is_torch_function_enabled",
    "get_num_threads",
    "is_autocast_cache_enabled",
    "_get_float32_matmul_precision",
    "_get_cublas_allow_tf32",
    "_get_cudnn_allow_tf32",
    "_get_cudnn_benchmark",
    "_get_cudnn_deterministic",
    "_get_cudnn_enabled",
    "_get_deterministic_fill_uninitialized_memory",
    "_get_flash_sdp_enabled",
    "_get_math_sdp_enabled",
    "_get_mem_efficient_sdp_enabled",
    "_get_mkldnn_enabled",
    "_get_nnpack_enabled",
    "_get_warnAlways",
    "_check_sparse_tensor_invariants",
    "is_anomaly_enabled",
)
"""Functions of `torch._C`, all of them C code, that tell a state."""


def _torch_c() -> dict[str, Any]:
    module = sys.modules.get("torch._C")
    return namespace(module) if is_module(module) else {}


def _torch_state() -> Iterator[tuple[str, Any]]:
    held = _torch_c()
    for name in _MODES:
        if name in held:
            yield name, repr(held[name]())


def _torch_seed() -> Any:
    generator = _torch_c().get("default_generator")
    return None if generator is None else generator.initial_seed()


def _operators() -> Iterator[tuple[str, str]]:
    """Each registered operator with its schema and its kernels, by dispatch key."""
    held = _torch_c()
    if "_dispatch_get_all_op_names" not in held:
        return
    dump = held["_dispatch_dump"]
    for name in sorted(held["_dispatch_get_all_op_names"]()):
        yield name, digest(re.sub(r"0x[0-9a-f]+", "0x…", dump(name)))
