#!/usr/bin/env python
"""Checks releases or checkouts of upstream and writes what a CI system wants.

    tools/ci/drift.py --out DIR --source SOURCE… [-- OPTIONS OF SHIMS DRIFT]

For each SOURCE (`vllm@latest`, a checkout, `git:PATH@REV`) DIR gets `NAME.json`,
`NAME.sarif` and `NAME.junit.xml`; GitHub's annotations and the step's summary are
written where GitHub asks for them. Exit 0 if all could be checked, whatever was
found, 2 if not: what a nightly job found is told by its issues, not by its colour.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FORMS = {"json": "json", "sarif": "sarif", "junit": "junit.xml"}


def name_of(source: str) -> str:
    """A file name for a source; no two sources have the same one."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", source).strip("-.")[-60:] or "source"
    if plain == source:
        return plain
    return f"{plain}-{hashlib.sha256(source.encode()).hexdigest()[:8]}"


def shims(source: str, form: str, options: Sequence[str]) -> str:
    """What `shims drift` prints. Ends this program where it cannot check."""
    words = ("drift", "--against", source, "--format", form, *options)
    done = subprocess.run(
        [sys.executable, "-m", "ascend_shims", *words],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        print(f"tools/ci/drift.py: {source} could not be checked", file=sys.stderr)
        sys.exit(2)
    return done.stdout


def categorized(sarif: str, name: str) -> str:
    """With a category of its own: code scanning keeps one result a category."""
    log = json.loads(sarif)
    for one in log["runs"]:
        one["automationDetails"] = {"id": f"ascend-shims/{name}/"}
    return json.dumps(log, indent=2)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("\n\n")[1].strip())
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--source", dest="sources", action="append", default=[])
    parser.add_argument("options", nargs="*")
    given = parser.parse_args(arguments)
    # An input of an action is one text; a list of sources is one a line.
    sources = [one.strip() for text in given.sources for one in text.splitlines()]
    sources = list(dict.fromkeys(one for one in sources if one))
    if not sources:
        parser.error("name a source, as in --source vllm@latest")
    given.out.mkdir(parents=True, exist_ok=True)
    serious = 0
    for source in sources:
        name = name_of(source)
        written = {form: shims(source, form, given.options) for form in FORMS}
        written["sarif"] = categorized(written["sarif"], name)
        for form, text in written.items():
            (given.out / f"{name}.{FORMS[form]}").write_text(text, encoding="utf-8")
        report = json.loads(written["json"])
        kinds = [one["verdict"] for one in report["findings"]]
        found = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
        print(f"{report['release']}: {found}", file=sys.stderr)
        serious += found.get("broken", 0) + found.get("review", 0)
        if os.environ.get("GITHUB_ACTIONS") == "true":
            sys.stdout.write(shims(source, "github", given.options))
    outputs = os.environ.get("GITHUB_OUTPUT")
    if outputs:
        with Path(outputs).open("a", encoding="utf-8") as file:
            file.write(f"findings={serious}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
