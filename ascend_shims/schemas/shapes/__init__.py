"""What commands and processes write as JSON, in types. Only schemas are made of them.

A field without a default is always there. One that is `UNSET` may be missing.
"""

from __future__ import annotations

from typing import Any

from . import follow, processes, prove, see, write

__all__ = ["DOCUMENTS"]

DOCUMENTS: dict[str, tuple[Any, ...]] = {
    "apply-check": (see.ApplyCheck,),
    "audit": (prove.Audited,),
    "bisect": (follow.Bisected,),
    "demo": (prove.Demo,),
    "diff": (follow.Compared, follow.Unpatched),
    "doctor": (see.Doctor,),
    "drift": (follow.Drift,),
    "explain": (see.Explained,),
    "guard-report": (processes.GuardLine,),
    "log-line": (processes.LogLine,),
    "matrix": (follow.Matrix,),
    "new-gap": (write.NewGap,),
    "report": (follow.Page,),
    "scan": (follow.Scan,),
    "show": (see.Show,),
    "status": (see.Status,),
    "verify": (prove.Proof, prove.NoAnswer),
}
"""By name of a command, or of a line that processes write: one of these."""
