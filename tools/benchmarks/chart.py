"""All ratios in one picture, for light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from .model import Entry, Results, Row
from .wording import number

__all__ = ["ALT", "draw"]

ALT = (
    "Ratios of all comparisons on a logarithmic axis; left of the line at 1 is less "
    "than what it is compared with. The numbers are in the tables below."
)

_LEFT, _RIGHT, _WIDTH = 520, 70, 1000
_LINE, _TOP, _TITLE = 22, 44, 30
_TICKS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
_LETTERS = 68
"""Of a label; the table has the rest."""

_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; }
.faint { fill: #59636e; font-size: 12px; }
.grid { stroke: #d1d9e0; }
.one { stroke: #59636e; stroke-width: 1.5; }
.less { fill: #0969da; stroke: #0969da; }
.more { fill: #bc4c00; stroke: #bc4c00; }
.range { stroke-width: 3; stroke-opacity: .45; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .faint { fill: #9198a1; }
  .grid { stroke: #3d444d; }
  .one { stroke: #9198a1; }
  .less { fill: #4493f8; stroke: #4493f8; }
  .more { fill: #f0883e; stroke: #f0883e; }
}
"""


def _x(ratio: float) -> float:
    low, high = math.log10(_TICKS[0]), math.log10(_TICKS[-1])
    at = min(max(math.log10(ratio), low), high)
    return _LEFT + (at - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)


def _cost(row: Row) -> tuple[float, float, float]:
    """The ratio and its interval, turned so that less is better."""
    assert row.ratio is not None
    found = (row.ratio.value, row.ratio.low, row.ratio.high)
    if row.better == "less":
        return found
    value, low, high = found
    return 1 / value, 1 / high, 1 / low


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def _row(row: Row, y: float) -> Iterator[str]:
    value, low, high = _cost(row)
    kind = "less" if value <= 1 else "more"
    label = f"{row.what} / {row.against}"
    if len(label) > _LETTERS:
        label = f"{label[: _LETTERS - 1].rstrip()}…"
    yield f"<g><title>{escape(f'{row.what}, against {row.against}')}</title>"
    yield _text(_LEFT - 14, y + 4, label, anchor="end")
    if row.ours.count > 2:
        yield (
            f'<line x1="{_x(low):.1f}" x2="{_x(high):.1f}" y1="{y}" y2="{y}" '
            f'class="{kind} range"/>'
        )
    x = _x(value)
    if kind == "less":
        yield f'<circle cx="{x:.1f}" cy="{y}" r="4.5" class="less"/>'
    else:
        corners = f"{x - 5:.1f},{y} {x:.1f},{y - 5} {x + 5:.1f},{y} {x:.1f},{y + 5}"
        yield f'<polygon points="{corners}" class="more"/>'
    yield _text(_WIDTH - 4, y + 4, number(value), "faint", "end")
    yield "</g>"


def _grid(height: float) -> Iterator[str]:
    for tick in _TICKS:
        kind = "one" if tick == 1 else "grid"
        x, end = f"{_x(tick):.1f}", height - 14
        yield f'<line x1="{x}" x2="{x}" y1="{_TOP - 10}" y2="{end}" class="{kind}"/>'
        yield _text(_x(tick), _TOP - 16, f"{tick:g}", "faint", "middle")


def draw(results: Results) -> str:
    """An SVG. Raises `ValueError` where there is no ratio to show."""
    body, y = [], float(_TOP)
    shown: list[tuple[Entry, list[Row]]] = [
        (entry, [row for row in entry.rows if row.ratio]) for entry in results.entries
    ]
    if not any(rows for _, rows in shown):
        raise ValueError("no ratios; measure something that is compared")
    for entry, rows in shown:
        if not rows:
            continue
        body.append(_text(4, y + _TITLE - 10, entry.title, "title"))
        y += _TITLE
        for row in rows:
            body += _row(row, y + _LINE / 2)
            y += _LINE
    height = y + 20
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} '
            f'{height:.0f}" width="{_WIDTH}" height="{height:.0f}" role="img">',
            f"<title>{escape(ALT)}</title>",
            f"<style>{_STYLE}</style>",
            *_grid(height),
            *body,
            "</svg>",
            "",
        ]
    )
