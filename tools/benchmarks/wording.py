"""Numbers and limits as they are written, on a terminal and on the page."""

from __future__ import annotations

from .model import Limit, Ratio, Row, Spread

__all__ = ["interval", "kept", "number", "quantity", "ratio", "spread_text"]


def number(value: float) -> str:
    """Three digits that count, without an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}" if abs(value) >= 0.01 else f"{value:.2g}"


def quantity(value: float, unit: str) -> str:
    """`41.20 ms`: of the unit its first word."""
    return f"{number(value)} {unit.split()[0]}"


def spread_text(spread: Spread) -> str:
    """The middle, and the half of the samples around it."""
    if spread.count == 1:
        return f"{number(spread.median)} (once)"
    low, high = number(spread.low), number(spread.high)
    return f"{number(spread.median)} ({low} to {high})"


def ratio(found: Ratio | None) -> str:
    return f"{number(found.value)} x" if found else ""


def interval(row: Row) -> str:
    """Of the ratio; empty where there were too few pairs to tell."""
    if row.ratio is None or row.ours.count < 3:
        return ""
    return f"{number(row.ratio.low)} to {number(row.ratio.high)}"


def kept(limit: Limit) -> str:
    return "met" if limit.met else "NOT MET"
