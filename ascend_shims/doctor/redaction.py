"""What leaves this machine goes without secrets and without names of people.

Rather too much is taken out than too little: what is redacted can be asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["HIDDEN", "Redaction", "relevant", "without_credentials"]

HIDDEN = "<redacted>"

_FAMILIES = (
    "ACL_",
    "ASCEND_",
    "ATB_",
    "CANN_",
    "HCCL_",
    "NPU_",
    "PYTORCH_NPU_",
    "TORCH_NPU_",
    "VLLM_",
)
"""Ours, vLLM's and Ascend's."""

_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|CERT|SIGNATURE",
    re.IGNORECASE,
)
_URL = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^\s/?#]*@", re.IGNORECASE)
_STATED = re.compile(
    r"(?P<name>\b[\w-]*(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key"
    r"|auth|authorization|signature|sig)[\w-]*[\"']?\s*[=:]\s*[\"']?)"
    r"(?:(?:bearer|basic)\s+)?[^\s,;&\"']+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(?P<kind>bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE)
_TOKENS = re.compile(
    r"\b(?:hf_|npm_|gh[oprsu]_|AKIA|ASIA)[A-Za-z0-9]{12,}"
    r"|\b(?:sk-|pypi-|github_pat_|glpat-|xox[abprs]-|eyJ|ya29\.|nvapi-)[\w.=-]{12,}"
)
_RANDOM = re.compile(r"(?<![\w+-])[\w+-]{24,}={0,2}(?![\w+-])")
_WORD = re.compile(r"[A-Za-z]{1,23}[0-9]{0,3}|[0-9]{1,10}")
_NO_NAMES = frozenset(
    {"app", "ascend", "home", "lib", "python", "root", "src", "torch", "usr", "vllm"}
)
"""Users called so are nobody in particular, and these are parts of many paths."""
_HOMES = re.compile(r"(?P<above>/home/|/Users/|/export/home/)(?!<)[^/\s:;,'\"]+")


def relevant(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that a ticket may need."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if name == "ASCEND_SHIMS" or name.startswith(_FAMILIES)
    }


def without_credentials(text: str) -> str:
    """A text without passwords in URLs, and without what looks like a token."""
    text = _URL.sub(lambda m: f"{m['scheme']}{HIDDEN}@", text)
    text = _STATED.sub(lambda m: f"{m['name']}{HIDDEN}", text)
    text = _BEARER.sub(lambda m: f"{m['kind']} {HIDDEN}", text)
    return _TOKENS.sub(HIDDEN, text)


@dataclass(frozen=True, slots=True)
class Redaction:
    """Knows whose home and name have to go."""

    homes: tuple[str, ...] = ()
    """Home directories of this user, under all their names."""
    user: str = ""

    def text(self, text: str) -> str:
        text = without_credentials(text)
        for home in sorted(self.homes, key=len, reverse=True):
            if len(home) > 1:
                text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
        text = _HOMES.sub(lambda m: f"{m['above']}<user>", text)
        if self.user and self.user.lower() not in _NO_NAMES:
            name = re.escape(self.user)
            text = re.sub(rf"(?<=[/@~]){name}(?![\w.-])", "<user>", text)
        return text

    def variable(self, name: str, value: str) -> str:
        """The value of a variable. Long random words of it go as well."""
        if _SECRET.search(name) and value:
            return HIDDEN
        return _RANDOM.sub(_unless_words, self.text(value))

    def document(self, value: Any) -> Any:
        """JSON data, every text in it, keys as well."""
        return _everywhere(self.text, value)


def _unless_words(found: re.Match[str]) -> str:
    """Long names are no secrets: each of their parts is a word, or a number."""
    parts = filter(None, re.split(r"[_+-]", found.group()))
    return found.group() if all(map(_WORD.fullmatch, parts)) else HIDDEN


def _everywhere(change: Callable[[str], str], value: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(k)): _everywhere(change, v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_everywhere(change, one) for one in value]
    return value
