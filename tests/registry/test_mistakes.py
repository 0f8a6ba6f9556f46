"""One table: a mistake, and what is said about it. `§` marks the reported place."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from ascend_shims.errors import ConfigurationError
from ascend_shims.registry import Problem, Registry, RegistryError

HEAD = """\
schema: 1
upstreams: [up, other]
package: stand_in.patches
gaps:
"""

PROSE = "title: T, kind: workaround, why: W, remove_when: R"
OPEN = f"status: open, {PROSE}"


def one_gap(rest: str) -> str:
    return f"{HEAD}- id: alpha\n  {{}}\n".replace("{}", rest)


def patched(patch: str, gap: str = "") -> str:
    """A gap `alpha` whose only patch is `patch`."""
    return f"{HEAD}- {{id: alpha, {OPEN}{gap}, patches: [\n    {{ {patch} }}\n  ]}}\n"


def probed(*signs: str) -> str:
    """A gap `alpha` whose removal probe has signs with these conditions."""
    spelled = ", ".join(f"{{says: S, all: [{conditions}]}}" for conditions in signs)
    return f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U, removal_probe: [{spelled}]}}\n"


ONE_OF = (
    "give it one of `exists`, `has`, `has_no`, `takes`, `takes_no`, `reads` "
    "or `reads_no`"
)
WRAP = "kind: wrap, replacement: one"
GOOD = f"target: up.mod:f, {WRAP}"


def two_gaps(a: str, b: str) -> str:
    return f"""{HEAD}
- {{id: alpha, {OPEN}, {a}}}
- {{id: beta, {OPEN}, {b}}}
"""


def rings(*after: str) -> str:
    return HEAD + "".join(
        f"- {{id: {gap_id}, {OPEN}, unpatched: U, {links}}}\n"
        for gap_id, links in zip(("alpha", "beta", "gamma-ray"), after, strict=True)
    )


STRUCTURE = {
    "unknown key": (
        patched(f"§tagret: up.mod:f, {WRAP}"),
        ["unknown key `tagret`; did you mean `target`?"],
    ),
    "unknown key, nothing near": (
        patched(f"{GOOD}, §zzz: 1"),
        [
            "unknown key `zzz`; the keys of a patch are `target`, `kind`, "
            "`replacement`, `versions`, `scope`, `lazy`, `waits_for`, `relies_on` "
            "and `swap_is_safe`"
        ],
    ),
    "unknown key at the top": (
        HEAD.replace("package", "§pakage") + f"- {{id: alpha, {OPEN}, unpatched: U}}\n",
        ["unknown key `pakage`; did you mean `package`?"],
    ),
    "a misspelled key is read on": (
        patched(f"§tagret: §up.mod.f, {WRAP}"),
        [
            "unknown key `tagret`; did you mean `target`?",
            "`target` cannot be `up.mod.f`; "
            "write a place upstream, written `package.module:Qual.name`",
        ],
    ),
    "what a misspelled key holds obeys the rules": (
        patched(f"§tagret: §down.mod:f, {WRAP}"),
        [
            "unknown key `tagret`; did you mean `target`?",
            "`down.mod:f` is outside the upstreams; a target lies in `up` or `other`",
        ],
    ),
    "missing key": (
        f"{HEAD}- §id: alpha\n  status: open\n  kind: workaround\n"
        "  why: W\n  remove_when: R\n  unpatched: U\n",
        ["`title` is missing; every gap has one"],
    ),
    "missing keys of a patch": (
        patched("target: up.mod:f").replace("{ target", "§§{ target"),
        [
            "`kind` is missing; every patch has one",
            "`replacement` is missing; every patch has one",
        ],
    ),
    "missing at the top": (
        "§schema: 1\nupstreams: [up]\n",
        ["`gaps` is missing; every registry has one"],
    ),
    "duplicate key": (
        patched(f"{GOOD}, §kind: add"),
        ["duplicate key `kind`, first on line 6; keep one of them"],
    ),
    "duplicate key in ranges": (
        patched(f"{GOOD}, versions: {{up: '>1', §up: '>2'}}"),
        ["duplicate key `up`, first on line 6; keep one of them"],
    ),
    "a key that is no text": (
        patched(f"{GOOD}, §[a, b]: 1"),
        ["a key must be plain text; write a name"],
    ),
    "text wanted, number found": (
        f"{HEAD}- {{id: alpha, {OPEN}, unpatched: §0.28}}\n",
        ["`unpatched` must be text, not a number; put it in quotes"],
    ),
    "text wanted, nothing found": (
        f"{HEAD}- id: alpha\n  title:§\n  status: open\n  kind: workaround\n"
        "  why: W\n  remove_when: R\n  unpatched: U\n",
        ["`title` must be text, not nothing; give it a value or leave the key out"],
    ),
    "range wanted, number found": (
        patched(f"{GOOD}, versions: {{up: §0.28}}"),
        ["`up` in `versions` must be text, not a number; put it in quotes"],
    ),
    "list wanted, text found": (
        f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U, after: §beta}}\n",
        ["`after` must be a list, not text; write `[beta]`"],
    ),
    "list wanted, mapping found": (
        f"{HEAD}- {{id: alpha, {OPEN}, patches: §{{a: 1}}}}\n",
        ["`patches` must be a list, not a mapping; begin each item with `- `"],
    ),
    "mapping wanted, text found": (
        f"{HEAD}- §alpha\n",
        ["an item of `gaps` must be a mapping, not text; write `key: value` lines"],
    ),
    "boolean wanted": (
        f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U, needs: {{device: §'yes'}}}}\n",
        ["`device` must be `true` or `false`, not text; write `true` or `false`"],
    ),
    "text or list wanted": (
        patched(f"target: §{{a: b}}, {WRAP}"),
        ["`target` must be text or a list, not a mapping; write text or a list"],
    ),
    "the whole file is a list": (
        "§- a\n",
        ["the file must be a mapping, not a list; write `key: value` lines"],
    ),
    "empty list": (
        "schema: 1\nupstreams: [up]\ngaps: §[]\n",
        ["`gaps` is empty; list at least one"],
    ),
    "empty text": (
        f"{HEAD}- {{id: alpha, {OPEN}, unpatched: §''}}\n",
        ["`unpatched` is empty; write a sentence"],
    ),
    "bad choice": (
        patched("target: up.mod:f, kind: §wrapp, replacement: one"),
        ["`kind` cannot be `wrapp`; did you mean `wrap`?"],
    ),
    "bad choice, nothing near": (
        patched("target: up.mod:f, kind: §zzz, replacement: one"),
        ["`kind` cannot be `zzz`; use `add`, `decorate`, `replace` or `wrap`"],
    ),
    "`off` is text as in YAML 1.2, and still not a kind": (
        patched("target: up.mod:f, kind: §off, replacement: one"),
        ["`kind` cannot be `off`; use `add`, `decorate`, `replace` or `wrap`"],
    ),
    "a later format": (
        HEAD.replace("1", "§2") + f"- {{id: alpha, {OPEN}, unpatched: U}}\n",
        [
            "`schema` cannot be `2`; this ascend-shims reads schema `1`: install the "
            "one that the registry is written for"
        ],
    ),
    "format as text": (
        HEAD.replace("1", "§'1'") + f"- {{id: alpha, {OPEN}, unpatched: U}}\n",
        ["`schema` cannot be `1`; write it without quotes"],
    ),
    "bad target": (
        patched(f"target: §up.mod, {WRAP}"),
        [
            "`target` cannot be `up.mod`; "
            "write a place upstream, written `package.module:Qual.name`"
        ],
    ),
    "bad candidate": (
        patched(f"target: ['up.mod:f', §'up.mod:f()'], {WRAP}"),
        [
            "an item of `target` cannot be `up.mod:f()`; "
            "write a place upstream, written `package.module:Qual.name`"
        ],
    ),
    "bad id": (
        f"{HEAD}- {{id: §Alpha_1, {OPEN}, unpatched: U}}\n",
        [
            "`id` cannot be `Alpha_1`; "
            "write a name of small letters, digits and `-`; "
            "gap `a-b` has its code in `patches/a_b.py`"
        ],
    ),
    "bad name": (
        patched("target: up.mod:f, kind: wrap, replacement: §one.two"),
        ["`replacement` cannot be `one.two`; write a plain Python name, without dots"],
    ),
    "tag": (
        patched(f"target: §!!python/name:os.system up.mod:f, {WRAP}"),
        ["tag `!!python/name:os.system` is not read; remove the tag"],
    ),
    "tag on a list": (
        f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U, after: §!!set [beta]}}\n",
        ["tag `!!set` is not read; remove the tag"],
    ),
    "a probe that names a function, as they did": (
        f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U, removal_probe: §gone}}\n",
        ["`removal_probe` must be a list, not text; write `[gone]`"],
    ),
    "a sign without words or conditions": (
        f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U, removal_probe: [§§{{}}]}}\n",
        [
            "`says` is missing; every sign has one",
            "`all` is missing; every sign has one",
        ],
    ),
    "a sign whose conditions are none": (
        f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U, "
        "removal_probe: [{says: S, all: §[]}]}\n",
        ["`all` is empty; list at least one"],
    ),
    "bad conditions": (
        probed(
            "{symbol: §'up.m:', exists: true}",
            "{symbol: up.m:f, exists: §'yes'}",
            "{symbol: up.m:f, takes: §a.b}",
            "{symbol: up.m:f, reads: [§'*', §a-b]}",
            "{symbol: up.m:f, §raeds: a}",
        ),
        [
            "`symbol` cannot be `up.m:`; write a place upstream, written "
            "`package.module:Qual.name`, or `package.module` for the whole file",
            "`exists` must be `true` or `false`, not text; write `true` or `false`",
            "`takes` cannot be `a.b`; write a name without dots, in which `*` stands "
            "for anything",
            *(
                f"an item of `reads` cannot be `{pattern}`; write a name or the end of "
                "a dotted one, in which `*` stands for anything but a dot, for example "
                "`torch.cuda`"
                for pattern in ("*", "a-b")
            ),
            "unknown key `raeds`; did you mean `reads`?",
        ],
    ),
    "merge keys are not read": (
        f"{HEAD}- &a {{id: alpha, {OPEN}, unpatched: U}}\n"
        f"- {{§<<: *a, id: beta, {OPEN}, unpatched: U}}\n",
        [
            "unknown key `<<`; the keys of a gap are `id`, `title`, `status`, `kind`, "
            "`why`, `remove_when`, `versions`, `default`, `needs`, `after`, "
            "`traced`, `patches`, `unpatched`, `removal_probe`, `provided_by`, "
            "`downstream` and `references`"
        ],
    ),
    "control characters stay out of the terminal": (
        patched('target: up.mod:f, kind: §"\\e[31m\\nwrap", replacement: one'),
        [
            r"`kind` cannot be `\x1b[31m\nwrap`; "
            "use `add`, `decorate`, `replace` or `wrap`"
        ],
    ),
}

RULES = {
    "duplicate id": (
        f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U}}\n"
        f"- {{id: §alpha, {OPEN}, unpatched: U}}\n",
        ["duplicate gap id `alpha`; give each gap its own"],
    ),
    "duplicate id of gaps that patch the same": (
        f"{HEAD}- {{id: alpha, {OPEN}, patches: [{{target: up.mod:f, {WRAP}}}]}}\n"
        f"- {{id: §alpha, {OPEN}, patches: [{{target: up.mod:f, {WRAP}}}]}}\n",
        ["duplicate gap id `alpha`; give each gap its own"],
    ),
    "unknown gap": (
        two_gaps(
            "unpatched: U, after: [§betta]", "unpatched: U, needs: {gaps: [§zzz]}"
        ),
        [
            "no gap has the id `betta`; did you mean `beta`?",
            "no gap has the id `zzz`; use `alpha` or `beta`",
        ],
    ),
    "after itself": (
        f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U, after: [§alpha]}}\n",
        ["`after` goes round in a circle: alpha -> alpha; take one of these out"],
    ),
    "circle": (
        rings("after: [§beta]", "after: [gamma-ray]", "after: [alpha]"),
        [
            "`after` goes round in a circle: alpha -> beta -> gamma-ray -> alpha; "
            "take one of these out"
        ],
    ),
    "two circles through one gap": (
        rings("after: [§beta, §gamma-ray]", "after: [alpha]", "after: [alpha]"),
        [
            "`after` goes round in a circle: alpha -> beta -> alpha; "
            "take one of these out",
            "`after` goes round in a circle: alpha -> gamma-ray -> alpha; "
            "take one of these out",
        ],
    ),
    "circle of needs behind a way into it": (
        rings(
            "needs: {gaps: [beta]}",
            "needs: {gaps: [§gamma-ray]}",
            "needs: {gaps: [beta]}",
        ),
        [
            "`needs` goes round in a circle: beta -> gamma-ray -> beta; "
            "take one of these out"
        ],
    ),
    "one slot, no order": (
        two_gaps(f"patches: [{{{GOOD}}}]", f"patches: [{{target: §up.mod:f, {WRAP}}}]"),
        [
            "`up.mod:f` is patched by `alpha` too on any version, without an order "
            "(line 6); say which lies beneath, for example `after: [alpha]` in `beta`"
        ],
    ),
    "one slot through a candidate, where the ranges meet": (
        two_gaps(
            f"versions: {{up: '<0.30'}}, patches: [{{{GOOD}, versions: {{up: '>1!0'}}}}"
            f", {{target: [up.new:f, up.mod:f], {WRAP}, versions: {{up: '>=0.28'}}}}]",
            f"patches: [{{target: [up.old:f, §up.mod:f], {WRAP}, "
            "versions: {up: '>0.28,<2'}}]",
        ).replace("'>1!0'", "'<0.20'"),
        [
            "`up.mod:f` is patched by `alpha` too on up 0.29, without an order "
            "(line 6); say which lies beneath, for example `after: [alpha]` in `beta`"
        ],
    ),
    "one slot twice in a gap": (
        patched(f"{GOOD} }}, {{ target: §up.mod:f, {WRAP}"),
        [
            "`up.mod:f` is patched twice on any version (line 6); "
            "make it one patch, or let their `versions` never meet"
        ],
    ),
    "no range": (
        patched(f"{GOOD}, versions: {{up: §'0.28'}}"),
        ["`0.28` is not a range; write one of PEP 440, for example `>=0.28,<0.29`"],
    ),
    "empty range": (
        patched(f"{GOOD}, versions: {{up: §'>=0.30,<0.28'}}"),
        ["`>=0.30,<0.28` can never match; no version is inside; check the bounds"],
    ),
    "patch outside its gap": (
        patched(
            f"{GOOD}, versions: {{up: §'<0.27'}}", ", versions: {up: '>=0.28,<0.34'}"
        ),
        [
            "`<0.27` lies outside the range of its gap, `<0.34,>=0.28`; "
            "no version is in both; correct one of them"
        ],
    ),
    "reliance outside its patch": (
        patched(
            f"{GOOD}, versions: {{up: '<0.29'}}, relies_on: [{{symbol: up.mod:g, "
            "how: calls, versions: {up: §'>=0.29'}}]",
            ", versions: {up: '>=0.28'}",
        ),
        [
            "`>=0.29` lies outside the range of its patch, `<0.29,>=0.28`; "
            "no version is in both; correct one of them"
        ],
    ),
    "gate on a misspelled package": (
        HEAD.replace("[up, other]", "[upstream]")
        + f"- {{id: alpha, {OPEN}, unpatched: U, versions: {{§upstrem: '>1'}}}}\n",
        ["`upstrem` is not among the upstreams; did you mean `upstream`?"],
    ),
    "gate on a distribution name": (
        patched(f"{GOOD}, versions: {{§up-cpu: '>1'}}"),
        [
            "`up-cpu` is not an import package; "
            "write the name that is imported, such as `torch_npu`"
        ],
    ),
    "target elsewhere": (
        patched(f"target: [up.mod:f, §othr.mod:f, §os:system], {WRAP}"),
        [
            "`othr.mod:f` is outside the upstreams; did you mean `other`?",
            "`os:system` is outside the upstreams; a target lies in `up` or `other`",
        ],
    ),
    "no patches, no reason": (
        f"{HEAD}- §{{id: alpha, {OPEN}}}\n- §{{id: beta, {OPEN}, patches: []}}\n",
        [
            "gap `alpha` has no patches and does not say why; "
            "add `patches`, or the reason as `unpatched`",
            "gap `beta` has no patches and does not say why; "
            "add `patches`, or the reason as `unpatched`",
        ],
    ),
    "patches and a reason for none": (
        patched(GOOD, ", §unpatched: U"),
        ["gap `alpha` has patches and says why it has none; remove `unpatched`"],
    ),
    "retired with patches": (
        f"{HEAD}- {{id: alpha, status: retired, {PROSE}, §patches: [{{{GOOD}}}]}}\n",
        [
            "gap `alpha` is retired and still has patches; "
            "remove `patches`, or set another `status`"
        ],
    ),
    "no such replacement": (
        patched("target: up.mod:f, kind: wrap, replacement: §Thre"),
        ["`Thre` is not defined in `stand_in.patches.alpha`; did you mean `Three`?"],
    ),
    "a name in an inner scope is no replacement": (
        patched("target: up.mod:f, kind: wrap, replacement: §hidden"),
        [
            "`hidden` is not defined in `stand_in.patches.alpha`; "
            "define it at the top level"
        ],
    ),
    "no such copy": (
        patched(f"{GOOD}, relies_on: [{{symbol: up.mod:g, how: calls, copy: §foru}}]"),
        ["`foru` is not defined in `stand_in.patches.alpha`; did you mean `four`?"],
    ),
    "a copy of what is watched": (
        HEAD.replace(
            "gaps:", "watch: [{symbol: up.m:f, how: calls, copy: §one}]\ngaps:"
        )
        + f"- {{id: alpha, {OPEN}, patches: [{{{GOOD}}}]}}\n",
        [
            "`copy` names `one`, and a watched symbol has no module for it; "
            "name it in a patch's `relies_on`"
        ],
    ),
    "a condition that asks nothing": (
        probed("§{symbol: up.mod:f}"),
        [f"a condition asks one thing, this one nothing; {ONE_OF}"],
    ),
    "a condition that asks two things": (
        probed("§{symbol: up.mod:f, takes: a, reads_no: b}"),
        [f"a condition asks one thing, this one `takes` and `reads_no`; {ONE_OF}"],
    ),
    "parameters of a file": (
        probed("{symbol: [§up.mod, up.mod:f], takes: a}"),
        [
            "`up.mod` is a file, which has no parameters; "
            "write a function or class, `package.module:Qual.name`"
        ],
    ),
    "a sign about two packages": (
        probed("{symbol: up.mod:f, exists: true}, {symbol: §other.m, reads: f}"),
        [
            "`other.m` is not in `up`, which the sign began with; "
            "give each package a sign of its own"
        ],
    ),
    "a sign about nobody's package": (
        probed("{symbol: [§othr.m], reads: f}", "{symbol: §torch_npu, has: npu}"),
        [
            "`othr.m` is neither in the upstreams nor watched; did you mean `other`?",
            "`torch_npu` is neither in the upstreams nor watched; "
            "a probe asks about `up` or `other`",
        ],
    ),
    "a probe of what is retired": (
        f"{HEAD}- {{id: alpha, status: retired, {PROSE}, unpatched: U, "
        "§removal_probe: [{says: S, all: [{symbol: up.m, reads: f}]}]}\n",
        [
            "gap `alpha` is retired and still has a removal probe; "
            "remove `removal_probe`, or set another `status`"
        ],
    ),
    "no such module": (
        f"{HEAD}- {{id: §delta-x, {OPEN}, patches: [{{{GOOD}}}]}}\n",
        [
            "the module `stand_in.patches.delta_x` does not exist; "
            "its names are expected there: add `delta_x.py`, or correct `package`"
        ],
    ),
    "no module of any gap": (
        HEAD.replace("stand_in.patches", "§stand_in.other")
        + f"- {{id: one-x, {OPEN}, patches: [{{{GOOD}}}]}}\n"
        + f"- {{id: two-x, {OPEN}, patches: [{{target: up.m:g, {WRAP}}}]}}\n",
        [
            "no gap has its module in the package `stand_in.other`; correct "
            "`package`, or add a module for each gap, such as `one_x.py`"
        ],
    ),
    "the package above": (
        HEAD.replace("stand_in.patches", "§stand_in")
        + f"- {{id: alpha, {OPEN}, patches: [{{{GOOD}}}]}}\n",
        [
            "no gap has its module in the package `stand_in`; "
            "did you mean `stand_in.patches`?"
        ],
    ),
    "the package beside": (
        HEAD.replace("stand_in.patches", "§stand_in.other")
        + f"- {{id: alpha, {OPEN}, patches: [{{{GOOD}}}]}}\n",
        [
            "no gap has its module in the package `stand_in.other`; "
            "did you mean `stand_in.patches`?"
        ],
    ),
    "no such module, and no package of its own": (
        HEAD.replace("package: stand_in.patches\n", "")
        + f"- {{id: §delta-x, {OPEN}, patches: [{{{GOOD}}}]}}\n",
        [
            "the module `ascend_shims.patches.delta_x` does not exist; if it is in a "
            "package of your own, write `package: your_patches` at the top of the "
            "registry, add `delta_x.py` to that package, and allow it by "
            "ASCEND_SHIMS_ALLOW=your_patches"
        ],
    ),
    "no such package": (
        HEAD.replace("stand_in.patches", "§stand_in.nowhere")
        + f"- {{id: alpha, {OPEN}, patches: [{{{GOOD}}}]}}\n",
        [
            "the package `stand_in.nowhere` cannot be found; "
            "install it, put the folder that it is in on PYTHONPATH, or correct "
            "`package`"
        ],
    ),
    "a package that is a path": (
        HEAD.replace("stand_in.patches", "§../stand_in/patches")
        + f"- {{id: alpha, {OPEN}, patches: [{{{GOOD}}}]}}\n",
        [
            "the package `../stand_in/patches` cannot be found; "
            "install it, put the folder that it is in on PYTHONPATH, or correct "
            "`package`"
        ],
    ),
}

SYNTAX = {
    "unclosed": (
        "schema: 1\nupstreams: [up\ngaps§: []\n",
        [
            "not YAML: while parsing a flow sequence, did not find expected ',' or ']'"
            "; check quotes, brackets and indentation up to here"
        ],
    ),
    "colon in plain text": (
        "schema: 1\nwhy: a§: b\n",
        [
            "not YAML: mapping values are not allowed in this context; "
            "check quotes, brackets and indentation up to here"
        ],
    ),
    "unknown alias": (
        "schema: §*nothing\n",
        [
            "not YAML: found undefined alias; "
            "check quotes, brackets and indentation up to here"
        ],
    ),
    "two documents": (
        "schema: 1\n§---\nschema: 1\n",
        [
            "not YAML: expected a single document in the stream, but found another "
            "document; check quotes, brackets and indentation up to here"
        ],
    ),
    "control character": (
        "schema: 1\nwhy: 'é§\x07'\n",
        ["not YAML: control characters are not allowed; remove it"],
    ),
}

TABLE = {**STRUCTURE, **RULES, **SYNTAX}
Refuse = Callable[[str], tuple[Problem, ...]]


def split_marks(marked: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without its marks, and where they stood."""
    places = []
    text = ""
    for character in marked:
        if character == "§":
            lines = text.split("\n")
            places.append((len(lines), len(lines[-1]) + 1))
        else:
            text += character
    return text, places


@pytest.mark.parametrize("name", TABLE)
def test_mistake(name: str, problems_of: Refuse) -> None:
    marked, said = TABLE[name]
    text, places = split_marks(marked)
    expected = [
        f"gap_registry.yaml:{line}:{column}: {message}"
        for (line, column), message in zip(places, said, strict=True)
    ]
    assert [str(problem) for problem in problems_of(text)] == expected


LoadText = Callable[[str], Registry]


def test_a_module_that_is_not_python_is_told_with_its_line(problems_of: Refuse) -> None:
    (problem,) = problems_of(f"{HEAD}- {{id: torn, {OPEN}, patches: [{{{GOOD}}}]}}\n")
    assert problem.message.startswith(
        "the module `stand_in.patches.torn` is not Python, line 2: "
    )
    assert problem.fix.startswith("repair ")
    assert problem.fix.endswith("torn.py")


def test_a_lock_is_no_registry(problems_of: Refuse) -> None:
    (problem,) = problems_of('{"baselines": {}, "schema": 2}')
    assert str(problem) == (
        "gap_registry.yaml: is a lock; name the registry that it lies beside"
    )


def test_everything_is_said_at_once_and_each_thing_once(
    problems_of: Refuse, load_text: LoadText
) -> None:
    text, places = split_marks(f"""\
schema: 1
§upstrems: [up]
package: stand_in.patches
gaps:
- §id: alpha
  status: §opened
  kind: workaround
  why: W
  remove_when: R
  patches:
  - §tagret: up.mod:f
    kind: wrap
    replacement: §missing
  - {{target: §down.mod:f, {WRAP}}}
- {{id: beta, {OPEN}, unpatched: U}}
- {{id: §beta, {OPEN}, after: [§gama-ray], unpatched: U, versions: {{up: §latest}}}}
- {{id: gamma-ray, {OPEN}, patches: [{{target: §up.mod:f, {WRAP}}}]}}
""")
    found = problems_of(text)
    assert [(problem.line, problem.column) for problem in found] == places
    assert [problem.message for problem in found] == [
        "unknown key `upstrems`",
        "`title` is missing",
        "`status` cannot be `opened`",
        "unknown key `tagret`",
        "`missing` is not defined in `stand_in.patches.alpha`",
        "`down.mod:f` is outside the upstreams",
        "duplicate gap id `beta`",
        "no gap has the id `gama-ray`",
        "`latest` is not a range",
        "`up.mod:f` is patched by `alpha` too on any version, without an order"
        " (line 11)",
    ]
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)
    assert str(caught.value).splitlines() == [str(problem) for problem in found]


def test_what_does_not_load_imports_nothing(problems_of: Refuse) -> None:
    before = set(sys.modules)
    problems_of(patched("target: up.mod:f, kind: wrap, replacement: hidden"))
    assert not [m for m in set(sys.modules) - before if "stand_in" in m]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            two_gaps(f"patches: [{{{GOOD}}}], after: [beta]", f"patches: [{{{GOOD}}}]"),
            id="order declared by the earlier",
        ),
        pytest.param(
            two_gaps(
                f"patches: [{{{GOOD}}}]", f"patches: [{{{GOOD}}}], after: [alpha]"
            ),
            id="order declared by the later",
        ),
        pytest.param(
            HEAD
            + f"- {{id: alpha, {OPEN}, patches: [{{{GOOD}}}]}}\n"
            + f"- {{id: gamma-ray, {OPEN}, unpatched: U, after: [alpha]}}\n"
            + f"- {{id: beta, {OPEN}, patches: [{{{GOOD}}}], after: [gamma-ray]}}\n",
            id="order through a third",
        ),
        pytest.param(
            patched(
                f"{GOOD}, versions: {{up: '<0.29'}} }}, "
                f"{{ {GOOD}, versions: {{up: '>=0.29'}}"
            ),
            id="one slot, ranges that never meet",
        ),
        pytest.param(
            two_gaps(
                f"versions: {{up: '<0.29'}}, patches: [{{{GOOD}}}]",
                f"patches: [{{{GOOD}, versions: {{up: '>=0.29'}}}}]",
            ),
            id="one slot, a gap's range and a patch's that never meet",
        ),
        pytest.param(
            patched(
                "target: up.mod:a, kind: add, replacement: borrowed }, "
                "{ target: up.mod:b, kind: add, replacement: renamed }, "
                "{ target: up.mod:c, kind: add, replacement: two }, "
                "{ target: up.mod:d, kind: add, replacement: Three }, "
                "{ target: up.mod:e, kind: add, replacement: four }, "
                "{ target: up.mod:f, kind: add, replacement: five"
            ),
            id="every way to define a name",
        ),
        pytest.param(
            f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U, default: off, "
            "needs: {device: true}}\n",
            id="an unquoted `off`",
        ),
        pytest.param(
            f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U, "
            "versions: &v {up: '>1'}}\n"
            f"- {{id: beta, {OPEN}, unpatched: U, versions: *v}}\n",
            id="an alias",
        ),
        pytest.param(
            "\ufeff" + f"{HEAD}- {{id: alpha, {OPEN}, unpatched: U}}\r\n",
            id="a byte order mark and a carriage return",
        ),
    ],
)
def test_what_is_fine(text: str, load_text: LoadText) -> None:
    registry = load_text(text)
    assert registry.gaps[0].id == "alpha"


def test_order_between_gaps_one_of_which_has_an_unreadable_order(
    problems_of: Refuse,
) -> None:
    """No conflict is invented where the order is there but misspelled."""
    text, _ = split_marks(
        two_gaps(f"patches: [{{{GOOD}}}]", f"patches: [{{{GOOD}}}], after: alpha")
    )
    assert [problem.message for problem in problems_of(text)] == [
        "`after` must be a list, not text"
    ]


def test_an_error_survives_pickling(problems_of: Refuse) -> None:
    import pickle

    problems = problems_of("schema: 2\n")
    error = RegistryError(problems)
    again = pickle.loads(pickle.dumps(error))
    assert again.problems == problems
    assert str(again) == str(error)
