"""The page in a real browser, as a person uses it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ascend_shims.page.fill import filled
from ascend_shims.page.model import Page

TOP = Path(__file__).parents[2]
_MINUS = "\N{MINUS SIGN}"


class Browser:
    """What `driver.mjs` does, one request after the other."""

    def __init__(self, folder: str, browser: str) -> None:
        self._process = subprocess.Popen(
            ["node", Path(__file__).with_name("driver.mjs"), folder, browser],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, act: str, **given: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"act": act, **given}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the browser ended"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def js(self, code: str) -> Any:
        return self("js", code=code)

    def press(self, *keys: str) -> None:
        for key in keys:
            self("press", keys=key)

    @property
    def focus(self) -> str:
        """What has the focus, as those hear it who cannot see it."""
        told: str = self.js(
            "document.activeElement.getAttribute('aria-label')"
            " || document.activeElement.id || document.activeElement.textContent"
        )
        return told

    def shown(self, selector: str) -> list[str]:
        """Texts of what is there and can be seen."""
        found: list[str] = self.js(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".filter((one) => one.checkVisibility())"
            ".map((one) => one.textContent)"
        )
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if shutil.which("node") is None:
        pytest.skip("no browser: node is not on the PATH")
    done = subprocess.run(
        [TOP / "tools" / "browser"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["tools/browser said nothing"]
        pytest.skip(f"no browser: {said[-1]}")
    made = Browser(*done.stdout.splitlines())
    yield made
    made.close()


Open = Callable[..., Browser]


@pytest.fixture
def opened(browser: Browser, page_of: Callable[..., Page], tmp_path: Path) -> Open:
    """Open the page, and watch that it neither complains nor asks for anything."""

    def open_(*versions: str, at: str = "", **given: Any) -> Browser:
        path = tmp_path / "page.html"
        path.write_text(filled(page_of(*versions)))
        browser("open", url=path.as_uri() + at, **given)
        return browser

    return open_


@pytest.fixture(autouse=True)
def quiet(browser: Browser) -> Iterator[None]:
    yield
    seen = browser("seen")
    assert seen["errors"] == []
    assert [url for url in seen["requests"] if not url.startswith("file:")] == []
    assert len({url.partition("#")[0] for url in seen["requests"]}) == 1


def _cell(gap: str, release: str) -> str:
    return f'#map button[aria-label^="{gap} at {release}:"]'


# What is there ---------------------------------------------------------------------


def test_the_heat_map(opened: Open) -> None:
    page = opened()
    assert page.shown("#map thead th") == ["Gap", "1.0", "1.1", "1.2", "1.3"]
    rows = page.js(
        "[...document.querySelectorAll('#map tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    # A sign in each cell, beside its colour.
    assert rows == [
        ["loud", "=", "≈", "~", "X"],
        ["copied", "=", "=", "=", "?"],
        ["gone", "·", "·", "·", "·"],
        ["along", "=", "=", "=", "~"],
        ["watch", "=", "=", "=", "X"],
    ]
    assert page.js("document.title") == "madeup 1.0 to 1.3 · ascend-shims"
    assert page.shown("#count") == ["5 of 5 gaps"]
    scopes = page.js(
        "[...document.querySelectorAll('th')].map((one) => one.scope)"
        ".filter((scope) => !['row', 'col'].includes(scope))"
    )
    assert scopes == []


def test_what_upstream_and_the_registry_say_stays_text(opened: Open) -> None:
    page = opened()
    page.js(
        "document.querySelectorAll('details').forEach((one) => { one.open = true })"
    )
    assert page.js("document.scripts.length") == 2
    assert page.js("document.querySelectorAll('main b').length") == 0
    assert "<b>loudly</b>" in page.shown("#gap-loud > summary")[0]
    assert "</script><script>document.title=" in page.shown("#gap-loud dd")[0]
    assert "broken out" not in page.js("document.title")


def test_processes_and_their_states(opened: Open) -> None:
    page = opened()
    assert page.shown("#states thead th") == [
        "Gap",
        "a new process here",
        "worker TP1 41, plan abc",
    ]
    assert page.shown("#states tbody tr")[:2] == [
        "loud… pending✓ applied",
        "copied○ off✗ failed",
    ]
    assert "Process 42 says nothing: no answer within 2 s" in " ".join(
        page.shown("#processes .note")
    )


def test_the_timeline_opens_upstreams_diff(opened: Open) -> None:
    page = opened()
    assert page.shown("#line tbody th")[0] == "answermadeup.core · loud"
    assert page.shown("#line tbody tr:first-child td") == [
        "•there, with no release before",
        f"+1 {_MINUS}0",
        f"+1 {_MINUS}1",
        _MINUS,
    ]
    page.js("document.querySelector('#line tbody button').focus()")
    page.press("ArrowRight", "Enter")
    assert page.shown("#diff-title") == ["madeup.core:answer, 1.1 → 1.2"]
    assert page.shown("#diff .minus") == ["-def answer(word):"]
    assert page.shown("#diff .plus") == ["+def answer(word, tone=None):"]
    page.press("Escape")
    assert page.shown("#diff-title") == []
    assert page.focus.startswith("answer at 1.2")


# Keys --------------------------------------------------------------------------------


def test_the_arrow_keys_move_and_the_table_is_one_stop(opened: Open) -> None:
    page = opened()
    stops = page.js("document.querySelectorAll('#map button[tabindex=\"0\"]').length")
    assert stops == 1
    page.js(f"document.querySelector('{_cell('loud', '1.0')}').focus()")
    walk = {
        "ArrowLeft": "loud at 1.0",
        "ArrowUp": "loud at 1.0",
        "ArrowRight": "loud at 1.1",
        "ArrowDown": "copied at 1.1",
        "End": "copied at 1.3",
        "Home": "copied at 1.0",
    }
    for key, place in walk.items():
        page.press(key)
        assert page.focus.startswith(place), key
    page("chord", keys=["Control", "End"])
    assert page.focus == "watch at 1.3: broken, changed"
    page("chord", keys=["Control", "Home"])
    assert page.focus == "loud at 1.0: identical"
    outline = page.js("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_enter_opens_the_gap_and_escape_goes_back(opened: Open) -> None:
    page = opened()
    page.js(f"document.querySelector('{_cell('copied', '1.3')}').focus()")
    page.press("Enter")
    assert page.js("document.activeElement.parentElement.id") == "gap-copied"
    assert page.js("document.getElementById('gap-copied').open")
    (row,) = page.shown("tr.here")
    assert row.startswith("1.3? reviewthe body of `madeup.voice:greet` changed")
    said = " ".join(page.shown("#gap-copied .inside"))
    for part in ("W", "R", "madeup >=1,<3", "off by default", "← chosen here"):
        assert part in said
    assert "madeup.voice:greet at 1.3" in said
    assert "madeup.core:greet ← chosen here at 1.0 to 1.2" in said
    page.press("Escape")
    assert page.focus == "copied at 1.3: review, changed"
    assert not page.js("document.getElementById('gap-copied').open")


def test_the_name_of_a_gap_is_a_link_to_it(opened: Open) -> None:
    page = opened()
    for _ in range(2):
        page.js("document.querySelector('#map th a').focus()")
        page.press("Enter")
        assert page.js("location.hash") == "#gap-loud"
        assert page.js("document.activeElement.parentElement.id") == "gap-loud"
        page.press("Escape")
        assert page.focus == "loud"
        assert page.js("document.querySelectorAll('details.gap[open]').length") == 0


def test_the_diff_where_the_verdict_changed(opened: Open) -> None:
    page = opened(at="#gap-copied")
    page.js(
        "document.querySelectorAll('#gap-copied details').forEach("
        "(one) => { one.open = true })"
    )
    page.js("new Promise((done) => setTimeout(done))")
    assert page.shown("#gap-copied pre .minus")[0] == '-    said = "hello"'
    assert "Seen from ours, copied.py:1:" in page.shown("#gap-copied p")
    assert "1 of 1: ours still has the old lines: port it" in page.shown(
        "#gap-copied p"
    )


def test_keys_for_the_filter_and_the_help(opened: Open) -> None:
    page = opened()
    page.press("/")
    assert page.focus == "text"
    page("type", text="hard?/")
    assert page.js("document.getElementById('text').value") == "hard?/"
    assert page.shown("#help") == []
    page.press("Escape")
    assert page.js("document.getElementById('text').value") == ""
    assert page.focus == "loud at 1.0: identical"
    page("type", text="?")
    assert len(page.shown("#help")) == 1
    page.press("Escape")
    assert page.shown("#help") == []
    assert page.focus == "loud at 1.0: identical"


def test_tab_reaches_everything_in_order(opened: Open) -> None:
    page = opened()
    page.press("Tab")
    assert page.focus == "Skip to the releases"
    page.press("Enter")
    assert page.focus == "main"
    page.press("Tab", "Tab")
    assert page.focus == "loud at 1.0: identical"


# Filters -----------------------------------------------------------------------------


def _rows(page: Browser) -> list[str]:
    return page.shown("#map tbody th")


def test_the_text_filter(opened: Open) -> None:
    page = opened()
    page("click", selector="#text")
    page("type", text="HARD hearing")
    assert _rows(page) == ["loud"]
    assert page.shown("#count") == ["1 of 5 gaps"]
    assert page.shown("details.gap > summary strong") == ["loud"]
    assert page.shown("#states tbody th") == ["loud"]
    assert page.shown("#line tbody th") == ["answermadeup.core · loud"]
    page("type", text=" nowhere")
    assert _rows(page) == []
    assert page.shown("#none") == ["No gap matches the filters."]
    page("click", selector="button[type=reset]")
    page.js("new Promise((done) => setTimeout(done))")
    assert len(_rows(page)) == 5


@pytest.mark.parametrize(
    ("verdicts", "rows"),
    [
        (["broken"], ["loud", "watch"]),
        (["review"], ["copied"]),
        (["broken", "review"], ["loud", "copied", "watch"]),
        (["compatible"], ["loud", "along"]),
    ],
)
def test_the_verdict_filter(opened: Open, verdicts: list[str], rows: list[str]) -> None:
    page = opened()
    for verdict in verdicts:
        page("click", selector=f"#verdicts button[value={verdict}]")
    assert _rows(page) == rows
    pressed = page.js(
        "[...document.querySelectorAll('[aria-pressed=true]')].map((one) => one.value)"
    )
    assert sorted(pressed) == sorted(verdicts)
    page("click", selector=f"#verdicts button[value={verdicts[0]}]")
    assert _rows(page) != rows


@pytest.mark.parametrize(
    ("state", "rows"),
    [("failed", ["copied"]), ("applied", ["loud"]), ("off", ["copied"])],
)
def test_the_state_filter(opened: Open, state: str, rows: list[str]) -> None:
    page = opened()
    page.js("document.getElementById('state').focus()")
    page("type", text=state)
    assert page.js("document.getElementById('state').value") == state
    assert _rows(page) == rows


def test_only_changes(opened: Open) -> None:
    page = opened("1.0", "1.1", "1.2")
    assert len(_rows(page)) == 5
    page("click", selector="#changed")
    assert _rows(page) == ["loud"]
    assert page.shown("#line tbody th") == ["answermadeup.core · loud"]
    # The arrow keys go from row to row of those that are left.
    page.js(f"document.querySelector('{_cell('loud', '1.0')}').focus()")
    page.press("ArrowDown")
    assert page.focus == "loud at 1.0: identical"


# Looks -------------------------------------------------------------------------------


def _is_dark(page: Browser) -> bool:
    colour = page.js("getComputedStyle(document.body).backgroundColor")
    red = int(colour.partition("(")[2].split(",")[0])
    return red < 128


def test_dark_mode_follows_the_system_and_the_button(opened: Open) -> None:
    page = opened(scheme="dark")
    assert _is_dark(page)
    looks = {}
    for _ in range(3):
        page("click", selector="#theme")
        looks[page.shown("#theme")[0]] = _is_dark(page)
    assert looks == {"Theme: dark": True, "Theme: light": False, "Theme: system": True}
    assert not _is_dark(opened(scheme="light"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened: Open, scheme: str) -> None:
    found = opened(scheme=scheme)("axe")
    assert found["broken"] == []
    # Of what was looked at, and not merely left out.
    assert {
        "color-contrast",
        "button-name",
        "scope-attr-valid",
        "html-has-lang",
    } <= set(found["passed"])


@pytest.mark.parametrize("width", [1280, 400])
def test_it_fits_the_window(opened: Open, width: int) -> None:
    page = opened(width=width)
    page("click", selector="#open")
    assert page.js("document.documentElement.scrollWidth") <= width


def test_print_has_the_gaps_and_no_controls(opened: Open) -> None:
    page = opened(scheme="dark")
    page("media", type="print")
    page.js("dispatchEvent(new Event('beforeprint'))")
    assert not _is_dark(page)
    assert page.shown("#filters") == []
    assert len(page.shown("details.gap .inside")) == 5
    page.js("dispatchEvent(new Event('afterprint'))")
    page("media", type="screen")
    assert page.shown("details.gap .inside") == []


def test_without_a_change_or_a_process_it_is_a_page_too(
    browser: Browser, page_of: Callable[..., Page], tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_text(filled(page_of("1.0", report=None, answers=())))
    browser("open", url=path.as_uri())
    assert len(_rows(browser)) == 5
    assert browser.shown("#processes p") == ["No running process carries shims."]
