"""Literals with words in them that no screen shows in a person's language, and why."""

from __future__ import annotations

FILES = {
    "cli/formats/github.py": "for a machine",
    "cli/formats/markdown.py": "for a ticket, which is in English",
    "observe/line.py": "for a log",
    "observe/metrics.py": "for a page of metrics",
    "observe/observer.py": "for a log",
    "registry/model.py": "descriptions in the JSON Schema",
    "registry/schema.py": "descriptions in the JSON Schema",
    "scaffold/texts.py": "what is written into a registry, a module and a test",
    "scan/wording.py": "words that code is searched for",
    "upstream/facts/body.py": "facts in the lock",
    "upstream/facts/recording.py": "facts in the lock",
}
"""Files of which nothing is said."""

TEXTS = {
    "a regular expression": {
        r"\b(export|unset|source|delete|shims) (?=\S)",
        r"COMMAND \[ARGS\]\.\.\.|\S+",
        r"(\S+): cannot open shared object file",
        r"; did you mean '([^']+)'\?",
        r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-]",
        r"(?m)^from[ \t]+[\w.]+[ \t]+import[ \t]*(\([^)]*\)|[^\n(]*)",
        r"^(?:async[ \t]+def|def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)",
        r"^\s*(type|def|async def|class)\s+\w+\[[^\]]*=[^\]]*\]",
        r"^neither (.+) nor \1 has",
        r"\1 does not have",
        r"""^not hasattr\(.*['\"]{last}['\"]\)""",
        r"bytes (\d+)-(\d+)/(\d+)",
        r"^ *(shims .*?)(?:  .*)?$",
        r"\bat 0x[0-9a-f]{9,16}\b",
    },
    "a name in JSON, for which the screen has another": {
        "guard saw every step",
        "guard saw no stock step",
        "KV bases aligned while applied",
        "KV bases stock before and after",
        "stock objects back",
    },
    "Python, for a reader or an interpreter": {
        "VerdictKind | None",
        "tuple[str | int, ...]",
        "OpenedSource | KeptSource | StubSource",
        "int | str",
        "not {text}",
        "not ({text})",
        "import *",
        "{subject} is {pattern}",
        "except {named}",
        "try: … except {guarded}",
        "def",
        "async def",
        "async generator",
        "from {module} import {name} as {bound}",
        "import {module} as {bound}",
        "{indent}class {name}({bases}):",
        "{indent}def {name}({takes}):",
        "self.{attribute}{said} = {value}",
        "{inner}def __init__{signature}:",
        "{inner}def {method}(self, *args, **kwargs): pass",
        "'  File \"",
        "'Traceback (most recent",
    },
    "searched for in what others said, or in a sentence before it is put into words": {
        "ASCEND_SHIMS_ASSUME:",
        "ascend-shims doctor:",
        "is not a variable of",
        "one of",
        "`schema` cannot",
        "needed a single revision",
        "seek before the start",
    },
    "a style, a date, a header of HTTP": {
        "bold red",
        "%Y-%m-%d %H:%M:%S UTC",
        "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; "
        "q=0.1, text/html; q=0.01",
        "bytes {have}-",
    },
    "typed as it stands, or a name": {
        "--gap {gap}",
        "--package {package}",
        "shims report --html report.html{about}{again}",
        "shims drift --against {name}=={release}{again}",
        "shims drift --registry {path}",
        "shims scan",
        "shims scan {given}{again}",
        "{call} --against vllm@latest",
        "{call} --registry-out gap_registry.yaml",
        "--registry {path}",
        "--registry {registry}",
        "[options.entry_points]",
        "ascend_shims.registries =",
        "export {variables}",
        "export PYTHONIOENCODING=utf-8",
        "pytest {gap}",
        "shims apply-check{registry}",
        "shims drift --against {name}@latest{registry}",
        "shims lock {release}{registry}",
        "--force-reinstall --no-deps",
        "shims run",
        "torch {base_version}",
        "vllm {verb}",
        "vllm ascend",
        "torch npu",
        "{id}  {title}",
        "{size} MB",
        "{package}/__init__.py,",
    },
    "names put beside each other; a pattern of so little would fit data as well": {
        "and",
        "or",
        "on {ranges}",
        "the {name}",
        "the {name} {func}",
        "in place",
        "module",
        "by `{kind}`",
        "bound {about}",
        "of {kind}",
        "of {distribution}",
        "is {raw}",
        "is {what}{function}",
        "is {what}{strange}",
        "frozenset {value}",
        "tuple {value}",
        "at <address>",
        "<generic parameters of",
        "{between} to {last}",
        "{k} in {place}",
        "{long}… of {text} {text2}",
        "{name} of {where}",
        "{names} in {path}",
        "{path} of {label}: {error}",
        "{qualname} of {file}:{co_firstlineno}",
        "{qualname} of {module}",
        "{releases} to {releases2}",
        "{said} in {place}",
        "{version} of {parent}",
        "{what} of {holder}",
        "{words} in {release}",
    },
    "for a log, or for whoever develops ascend-shims": {
        "could not patch %s after its import",
        "could not revise the plan after %s was imported",
        "this process cannot answer `shims status`: %s",
        "model.py uses {shape}: teach `structure` to read it",
        "what git stores is always told the same",
    },
    "Markdown, for a ticket": {
        "### shims status: {environment}",
        "- {namespace} is left out: {problem}",
        "in a new process",
        "registry of",
        "brought by",
    },
}

STARTS = {
    "import sys\n": "a program for another interpreter",
    "import ctypes, json, sys\n": "a program for another interpreter",
    "import importlib, ": "a program for another interpreter",
    "# A draft, written by": "in a registry that a person goes on with",
    "# decide. Each gap": "in a registry that a person goes on with",
}
"""How texts begin that are too long to list."""

DRAFT = "scan/draft.py"
"""Writes a registry; its errors are said, and what it writes is not."""


def is_said(file: str, text: str) -> bool:
    """Whether a person may read this text on a screen."""
    if file in FILES or (file == DRAFT and not text.startswith("no patch was found")):
        return False
    if any(text.startswith(start) for start in STARTS):
        return False
    return all(text not in texts for texts in TEXTS.values())
