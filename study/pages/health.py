"""SMART attributes on the study page: which differ between slow drive-days and others, and what they would have caught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from engine.read import Row
from report.page.numbers import KINDS, listed, noun

MEASURES = {"raw_value": "raw value", "raw_change": "change since the day before", "normalised_value": "normalised value"}
NO_LATENCY = "Sources without latencies, such as Backblaze's drive stats, cannot say anything of slowness."


@dataclass(frozen=True)
class HealthRow:
    """A rule of one kind of drive: what it looks at, the difference where it is an attribute, and what it would have caught."""

    kind: str
    name: str
    comparison: Row | None
    warning: Row


def health_words(comparisons: Sequence[Row]) -> list[str]:
    """A sentence for each kind of drive, by the rows of health_comparison, ordered by kind."""
    sentences = []
    for kind, rows in groupby(comparisons, key=lambda row: row["kind"]):
        of_kind = list(rows)
        compared = [row for row in of_kind if row["is_different"] is not None]
        name = KINDS[kind][1].capitalize() if kind != "ssd" else "SSDs"
        differing = sorted({row["attribute"] for row in compared if row["is_different"]})
        if not compared:
            sentences.append(f"{name}: too few RAID groups had a slow drive-day, so no attribute is compared.")
        elif not differing:
            sentences.append(f"{name}: nothing. None of {noun(len(compared), 'comparison', 'comparisons')} finds a difference.")
        else:
            sentences.append(f"{name}: {listed(differing)} {'differs' if len(differing) == 1 else 'differ'}.")
    return [*(sentences or ["No SMART attribute of a drive with latencies has landed, so nothing is known."]), NO_LATENCY]


def health_rows(comparisons: Sequence[Row], warnings: Sequence[Row]) -> list[HealthRow]:
    """The rules of the kinds in which an attribute differs, those of attributes first."""
    found = {(row["kind"], row["attribute"], row["measure"]): row for row in comparisons if row["scope"] == "all"}
    kinds = {row["kind"] for row in warnings if row["rule"] == "attribute"}
    return [
        HealthRow(
            row["kind"],
            f"{row['attribute']}, {MEASURES[row['measure']]}" if row["rule"] == "attribute" else "slow in the 28 days before",
            found.get((row["kind"], row["attribute"], row["measure"])),
            row,
        )
        for row in warnings
        if row["kind"] in kinds
    ]
