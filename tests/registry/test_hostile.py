"""Files that are not registries at all, and files made to do harm."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ascend_shims.registry import Problem, Registry, RegistryError, load
from ascend_shims.registry.document import MAX_DEPTH, MAX_NODES
from ascend_shims.registry.reading import MAX_BYTES

from ..fresh import LONG

Refuse = Callable[[str], tuple[Problem, ...]]


@contextmanager
def bounded() -> Iterator[None]:
    """What is inside takes a second or two, and not for ever.

    In time of this thread's own: how busy the machine is does not count.
    """
    start = time.thread_time()
    yield
    assert time.thread_time() - start < 30


def only_problem(path: Path) -> str:
    with pytest.raises(RegistryError) as caught:
        load(path)
    assert len(caught.value.problems) == 1
    return str(caught.value).replace(str(path), "FILE")


def test_no_such_file(tmp_path: Path) -> None:
    assert only_problem(tmp_path / "none.yaml") == (
        "FILE: cannot be read: No such file or directory; give a readable file"
    )


def test_a_path_that_cannot_be(tmp_path: Path) -> None:
    assert "cannot be read" in only_problem(tmp_path / "nul\0byte")


def test_a_directory(tmp_path: Path) -> None:
    assert only_problem(tmp_path) == (
        "FILE: is a directory; give the path of a registry file"
    )


def test_a_link_that_goes_in_circles(tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(link)
    assert "cannot be read" in only_problem(link)


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(only_problem(pipe)))
    thread.daemon = True
    thread.start()
    thread.join(LONG)
    assert said == ["FILE: is not a regular file; give the path of a registry file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret.yaml"
    path.touch(mode=0)
    assert "cannot be read: Permission denied" in only_problem(path)


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"schema: 1\n# caf\xe9\n")
    assert only_problem(path) == "FILE:2:6: is not UTF-8; save it as UTF-8"


def test_utf16(tmp_path: Path) -> None:
    path = tmp_path / "wide.yaml"
    path.write_bytes("schema: 1\n".encode("utf-16"))
    assert only_problem(path) == "FILE:1:1: is not UTF-8; save it as UTF-8"


def test_too_big(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    assert only_problem(path) == (
        "FILE: is larger than 1024 KiB; give the path of a registry file"
    )


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n...\n"])
def test_empty(text: str, problems_of: Refuse) -> None:
    (problem,) = problems_of(text)
    assert problem.message in {
        "is empty",
        "the file must be a mapping, not nothing",
    }


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 50_000,
        "- " * 200_000,
        "".join(f"{' ' * depth}a:\n" for depth in range(1_000)),
        "gaps: " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "a: &a [*a]\n",
        "&a {b: *a}\n",
        "? " * 2_000 + "a",
    ],
    ids=["lists", "mappings", "items", "blocks", "just over", "ring", "ring2", "keys"],
)
def test_depth(text: str, problems_of: Refuse) -> None:
    with bounded():
        (problem,) = problems_of(text)
    assert "nested too deeply" in problem.message or "not YAML" in problem.message


def test_depth_that_is_allowed(problems_of: Refuse) -> None:
    depth = MAX_DEPTH - 1
    problems = problems_of(f"gaps: {'[' * depth}{']' * depth}\n")
    assert "`schema` is missing" in [problem.message for problem in problems]


def test_a_billion_laughs(problems_of: Refuse) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    with bounded():
        (problem,) = problems_of("\n".join(lines))
    assert problem.message == f"has more than {MAX_NODES} values, aliases expanded"
    assert problem.line is not None


def test_a_long_plain_file_is_bounded_too(problems_of: Refuse) -> None:
    (problem,) = problems_of("gaps:\n" + "- a\n" * MAX_NODES)
    assert "has more than" in problem.message


HEAD = "schema: 1\nupstreams: [up]\npackage: stand_in.patches\ngaps:\n"
GAP = "status: open, title: T, kind: workaround, why: W, remove_when: R"


@pytest.mark.parametrize("length", [101, 4_000, 300_000])
@pytest.mark.parametrize("form", ["{}", "-{}", "{}.5"])
def test_a_number_without_an_end(form: str, length: int, problems_of: Refuse) -> None:
    number = form.format("9" * (length - len(form) + 2))
    sound = f"{HEAD}- {{id: alpha, {GAP}, unpatched: U}}\n"
    # Python's own limit may be switched off, and then it takes for ever.
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with bounded():
            (one,) = problems_of(sound.replace("1", number, 1))
            (other,) = problems_of(sound.replace("U}", f"{number}}}"))
    finally:
        sys.set_int_max_str_digits(limit)
    said = f"is too long ({length} characters)"
    assert (one.message, one.fix) == (f"the number in `schema` {said}", "write `1`")
    assert (other.message, other.fix) == (
        f"the number in `unpatched` {said}",
        "write text",
    )
    assert (one.line, other.line) == (1, 5)


def test_a_key_that_is_a_number_without_an_end(problems_of: Refuse) -> None:
    text = f"{HEAD}- {{id: alpha, {GAP}, unpatched: U, {'9' * 500}: 1}}\n"
    (problem,) = problems_of(text)
    assert problem.message == "a key must be plain text"


FULL = """\
schema: 1
upstreams: ["up"]
package: stand_in.patches
gaps:
  - id: "alpha"
    title: T
    status: open
    kind: workaround
    why: W
    remove_when: R
    patches:
      - target: "up.mod:f"
        kind: wrap
        replacement: "one"
        waits_for: "up.other"
        relies_on: [{symbol: "up.mod:g", how: calls, copy: "two"}]
    removal_probe:
      - says: S
        all: [{symbol: "up.file", has: "name"}, {symbol: "up.mod:f", reads: "a.b"}]
    provided_by: [{symbol: "plugin.mod:g", reads: "name"}]
"""
QUOTED = re.findall(r'"[^"]+"', FULL)


@pytest.mark.parametrize("end", [r"\n", r"\r", r"\n\n", r"\u2028", r"\0", " "])
def test_no_name_ends_with_a_line_break(
    end: str, problems_of: Refuse, load_text: Callable[[str], Registry]
) -> None:
    assert load_text(FULL).gaps[0].id == "alpha"
    assert len(QUOTED) == 13
    for at, word in enumerate(QUOTED):
        parts = re.split(r'("[^"]+")', FULL)
        parts[2 * at + 1] = f'{word[:-1]}{end}"'
        problems = problems_of("".join(parts))
        assert "cannot be" in problems[0].message, (word, problems)


def test_a_chain_of_a_thousand_gaps_overflows_nothing(problems_of: Refuse) -> None:
    count = 1_000
    text = HEAD + "".join(
        f"- {{id: g{n}, {GAP}, unpatched: U, after: [g{(n + 1) % count}]}}\n"
        for n in range(count)
    )
    (problem,) = problems_of(text)
    assert problem.message == (
        "`after` goes round in a circle: g0 -> g1 -> g2 -> g3 -> g4 -> g5 -> ... -> "
        "g996 -> g997 -> g998 -> g999 -> g0"
    )


def test_a_dense_tangle_of_gaps_ends(problems_of: Refuse) -> None:
    count = 100
    everyone = ", ".join(f"g{n}" for n in range(count))
    text = HEAD + "".join(
        f"- {{id: g{n}, {GAP}, unpatched: U, after: [{everyone}]}}\n"
        for n in range(count)
    )
    with bounded():
        problems = problems_of(text)
    # Every edge that leads back, to itself included.
    assert len(problems) == count * (count + 1) // 2


def test_a_thousand_patches_on_one_slot_are_said_once_each(
    problems_of: Refuse,
) -> None:
    count = 1_000
    patch = "{target: up.mod:f, kind: wrap, replacement: one}"
    text = HEAD + f"- {{id: alpha, {GAP}, patches: [\n" + f"{patch},\n" * count + "]}\n"
    with bounded():
        problems = problems_of(text)
    assert len(problems) == count - 1
    assert [problem.line for problem in problems] == list(range(7, 6 + count))


@pytest.mark.parametrize(
    "range_",
    [
        ">=" + "1" * 5_000,
        "," * 5_000,
        ">=1." + "0." * 2_000 + "0",
        "!=1," * 49 + "!=1",
        ">=1!" + "9" * 190,
    ],
)
def test_odd_ranges_end(range_: str, problems_of: Refuse) -> None:
    with bounded():
        problems = problems_of(
            f"{HEAD}- {{id: alpha, {GAP}, versions: {{up: '{range_}'}}, after: [x]}}\n"
        )
    assert problems


def test_without_the_c_parser_the_same_is_said(tmp_path: Path) -> None:
    """`yaml` may have been built without libyaml."""
    path = tmp_path / "registry.yaml"
    for text in (
        f"{HEAD}- {{id: alpha, {GAP}, tittle: x}}\n",
        "schema: 1\nupstreams: [up\ngaps: []\n",
        "schema: 1\nwhy: 'a\x07'\n",
        "a: &a [*a]\n",
        "[" * 100_000,
        "",
    ):
        path.write_text(text)
        said = [_load_in_child(path, without) for without in (False, True)]
        assert all("registry.yaml" in answer for answer in said), said
        places = [
            [line.split(" ")[0] for line in answer.split("\n")] for answer in said
        ]
        if "[[[" not in text:  # the parsers give up at different depths
            assert places[0] == places[1]


def _load_in_child(path: Path, without_c: bool) -> str:
    hide = "del yaml.CSafeLoader\n" if without_c else ""
    code = f"import sys, yaml\n{hide}" + (
        "from ascend_shims.registry import load, RegistryError\n"
        "try: load(sys.argv[1])\n"
        "except RegistryError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.strip()
