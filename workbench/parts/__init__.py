"""The parts of the bench: each measures one promise and gives a section of docs/results/bench.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.measure import Cost

PAPER_DAYS = 74
"""Days of the paper's fleet that make the paper's 870 million drive-hours."""


@dataclass(frozen=True)
class Setting:
    """Where a part works, how often it repeats, and how large its fleets are."""

    work: Path
    repetitions: int
    small: bool = False
    scale_days: int = PAPER_DAYS

    @property
    def paper_fleet(self) -> tuple[int, int]:
        """RAID groups of disks and of SSDs; full size: the 462,551 data drives of the paper."""
        return (30, 4) if self.small else (38_029, 572)

    @property
    def month_fleet(self) -> tuple[int, int]:
        """RAID groups of disks and of SSDs; full size: 46,000 drives."""
        return (20, 4) if self.small else (3_600, 60)

    @property
    def month_days(self) -> int:
        """Days of the smaller fleet: full size gives 38 million drive-hours."""
        return 4 if self.small else 34

    @property
    def histories(self) -> tuple[int, ...]:
        """Days of history before one more hour."""
        return (1, 3) if self.small else (1, 7, 28)

    @property
    def year_histories(self) -> tuple[int, int]:
        """Days of history before one more hour of a small fleet."""
        return (1, 3) if self.small else (28, 365)

    @property
    def relation_days(self) -> tuple[int, int]:
        """Days of the smaller fleet whose relations are made: full size gives 9 and 38 million drive-hours."""
        return (2, 4) if self.small else (8, 34)


def middle(costs: Sequence[Cost]) -> Cost:
    """Medians of wall and CPU seconds, and the greatest peak."""
    return Cost(
        statistics.median(each.seconds for each in costs),
        statistics.median(each.cpu_seconds for each in costs),
        max(each.peak_mib for each in costs),
    )


@dataclass(frozen=True)
class Bound:
    """Limit that a measured value must stay below."""

    what: str
    value: float
    limit: float
    unit: str = "s"
    aim: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the value is at most the limit."""
        return self.value <= self.limit

    def __str__(self) -> str:
        """A line of a list: the bound, the value, and whether the bound holds."""
        aim = "" if self.aim is None else f", aim {self.aim:g}{self.space}{self.unit}"
        state = "holds" if self.holds else "FAILS"
        return f"- {self.what}: **{self.value:.2f}{self.space}{self.unit}** (at most {self.limit:g}{self.space}{self.unit}{aim}): {state}"

    @property
    def space(self) -> str:
        """Between a number and its unit."""
        return "" if self.unit == "x" else " "


@dataclass(frozen=True)
class Section:
    """One section of the results: its title stays the same from run to run."""

    title: str
    lines: list[str]
    bounds: list[Bound] = field(default_factory=list)
