"""Why slow intervals were slow, computed the slow way: every rule of docs/causes.md asked of every interval in turn.

Names as in reference.py. `hours` are an interval's rows of fct_drive_hours, ascending.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta

from .reference import HOUR, Fleet, Record, enclosure_of, floor_hour, is_in_maintenance, shared_enclosures
from .study import effective_size, is_multiple, nanoseconds, wilson

EXPLICIT = ("not_spinning", "not_responding", "response_timeout", "scsi_timeout", "media_error")
TICK_NS = 250_000


def places_of(fleet: Fleet, drive: str, shared: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """The host and the enclosure of a drive, as far as they are known."""
    named = (("host", fleet.attribute(drive, "host")), ("enclosure", enclosure_of(fleet, drive, shared)))
    return [(place, name) for place, name in named if name is not None]


class Slow:
    """The slow drive-hours of a fleet, and what is asked of them."""

    def __init__(self, fleet: Fleet, drive_hours: list[Record], raid_hours: list[Record]) -> None:
        self.fleet = fleet
        self.slow = [row for row in drive_hours if row["is_slow"]]
        self.row_of = {(row["drive_id"], row["hour_utc"]): row for row in self.slow}
        self.raid_hour = {(row["raid_group_id"], row["hour_utc"]): row for row in raid_hours}
        self.at_once: dict[tuple[tuple[str, str], datetime], int] = defaultdict(int)
        self.shared = shared_enclosures(fleet)
        for row in self.slow:
            for place in places_of(fleet, row["drive_id"], self.shared):
                self.at_once[place, row["hour_utc"]] += 1

    # ---- of an hour

    def is_rebuilding(self, row: Record) -> bool:
        """Whether a rebuild or scrub of the RAID group covers an instant of the hour; without an end it takes an hour."""
        for event in self.fleet.events:
            if event["event_type"] in ("rebuild", "scrub") and self.fleet.event_group(event) == row["raid_group_id"]:
                ended = event["occurred_at"] + HOUR if event["ended_at"] is None else event["ended_at"]
                if event["occurred_at"] < row["hour_utc"] + HOUR and row["hour_utc"] < ended:
                    return True
        return False

    def is_above_usual(self, row: Record) -> bool:
        ratio = self.raid_hour[row["raid_group_id"], row["hour_utc"]]["group_slowdown"]
        return ratio is not None and ratio >= 2

    def shows_all_it_can(self, row: Record) -> bool:
        """PI-18: of n drives at most floor((n-1)/2) reach 2. One slow drive is no group."""
        hour = self.raid_hour[row["raid_group_id"], row["hour_utc"]]
        return hour["slow_drive_count"] >= 2 and hour["slow_drive_count"] >= (hour["reporting_drive_count"] - 1) // 2

    def neighbours(self, row: Record) -> tuple[int, str, str]:
        """How many drives of the place with most of them are slow at once, itself among them, and which place; of as many the enclosure."""
        of_places = [(self.at_once[place, row["hour_utc"]], *place) for place in places_of(self.fleet, row["drive_id"], self.shared)]
        return max(of_places, key=lambda found: (found[0], found[1] == "enclosure"), default=(0, "", ""))

    def is_in_ticks(self, row: Record) -> bool:
        """Twice or three times the peers' latency, both whole ticks: merged, or of a direction that was slow itself."""
        pairs = [(row["latency_us"], row["median_latency_us"], row["slowdown"])]
        pairs += [(*row[f"{side}_latencies_us"], row[f"{side}_slowdown"]) for side in ("read", "write")]
        return any(
            slowdown is not None
            and slowdown >= 2
            and is_multiple(latency, middle, (3, 4, 6))
            and nanoseconds(latency) % TICK_NS == nanoseconds(middle) % TICK_NS == 0
            for latency, middle, slowdown in pairs
        )

    # ---- of an interval

    def event(self, hours: list[Record]) -> str | None:
        start = hours[0]["hour_utc"]
        near = [
            event["event_type"]
            for event in self.fleet.events_of.get(hours[0]["drive_id"], [])
            if event["event_type"] in EXPLICIT and abs(floor_hour(event["occurred_at"]) - start) <= HOUR
        ]
        return f"{len(near)} within 1 h of its start, such as {min(near)}" if near else None

    def cohort(self, hours: list[Record]) -> str | None:
        """The drive's model with its firmware, else its model, where they are slow that day and the others of the kind are not."""
        drive, day = hours[0]["drive_id"], hours[0]["hour_utc"].date()
        model, firmware = (self.fleet.attribute(drive, name) for name in ("model", "firmware"))
        if model is None:
            return None
        narrow = None if firmware is None else self.bad_cohort(drive, day, ("model", "firmware"), f"model {model} firmware {firmware}")
        return narrow or self.bad_cohort(drive, day, ("model",), f"model {model}")

    def bad_cohort(self, drive: str, day: object, names: tuple[str, ...], called: str) -> str | None:
        fleet = self.fleet
        peers = [
            other
            for other, seen in fleet.hours_of_drive.items()
            if fleet.kind(other) == fleet.kind(drive) and min(seen).date() <= day <= max(seen).date()
        ]
        slow = {row["drive_id"] for row in self.slow if row["hour_utc"].date() == day}
        cohort = [other for other in peers if all(fleet.attribute(other, name) == fleet.attribute(drive, name) for name in names)]
        others = [other for other in peers if other not in cohort]
        hit, hit_others = len(slow.intersection(cohort)), len(slow.intersection(others))
        first_groups = {
            min(row["raid_group_id"] for row in self.slow if row["drive_id"] == other and row["hour_utc"].date() == day)
            for other in slow.intersection(cohort)
        }
        # so many of the others would be slow at the cohort's rate
        expected = hit * len(others)
        if hit < 5 or len(first_groups) < 2 or expected < 5 * len(cohort) or expected < 3 * hit_others * len(cohort):
            return None
        return f"{called}: {hit} of {len(cohort)} drives slow that day, of the other drives {hit_others} of {len(others)}"


def tenths(value: float) -> str:
    """Rounded down to tenths."""
    return str(math.floor(value * 10) / 10)


def rules(slow: Slow, hours: list[Record], interval: Record) -> list[tuple[str, Callable[[], str | None]]]:
    """Every rule in the order of the ledger: its cause, and what gives its evidence, None where it does not hold."""

    def most(holds: Callable[[Record], bool], words: Callable[[], str]) -> Callable[[], str | None]:
        def asked() -> str | None:
            count = sum(1 for row in hours if holds(row))
            return f"{words()} in {count} of {len(hours)} hour{'s' * (len(hours) != 1)}" if 2 * count > len(hours) else None

        return asked

    def greatest(column: str) -> str:
        return tenths(max(row[column] for row in hours if row[column] is not None))

    def group_words() -> str:
        usual, all_it_can = (sum(1 for row in hours if holds(row)) for holds in (slow.is_above_usual, slow.shows_all_it_can))
        return f"RAID group above its usual latency ({usual} h) or with as many slow drives as can show ({all_it_can} h)"

    def neighbour_words() -> str:
        count, place, name = max((slow.neighbours(row) for row in hours), key=lambda found: (found[0], found[1] == "enclosure"))
        return f"{count} drives of {place} {name} slow at once"

    def censored() -> str | None:
        sides = [side for side, column in (("before", "left"), ("after", "right")) if interval[f"is_{column}_censored"]]
        return f"no slowdown in the hour {' and '.join(sides)} it" if sides else None

    return [
        (
            "workload_rate",
            most(
                lambda row: (row["rate_imbalance"] or 0) >= 2,
                lambda: f"its peers' I/Os times {greatest('rate_imbalance')} at most, times 2.0 or more",
            ),
        ),
        (
            "workload_size",
            most(
                lambda row: (row["size_imbalance"] or 0) >= 2,
                lambda: f"its peers' I/O size times {greatest('size_imbalance')} at most, times 2.0 or more",
            ),
        ),
        ("drive_event", lambda: slow.event(hours)),
        ("rebuild_or_scrub", most(slow.is_rebuilding, lambda: "rebuild or scrub")),
        ("maintenance", most(lambda row: is_in_maintenance(slow.fleet, row["drive_id"], row["hour_utc"]), lambda: "planned maintenance")),
        ("whole_group", most(lambda row: slow.is_above_usual(row) or slow.shows_all_it_can(row), group_words)),
        ("neighbours", most(lambda row: slow.neighbours(row)[0] >= 3, neighbour_words)),
        ("latency_quantum", most(slow.is_in_ticks, lambda: "exact multiple of its peers' latency in ticks of 250 us")),
        ("cohort", lambda: slow.cohort(hours)),
        ("censored", censored),
        ("unexplained", lambda: "none of the rules holds"),
    ]


def fct_interval_causes(fleet: Fleet, drive_hours: list[Record], raid_hours: list[Record], intervals: list[Record]) -> list[Record]:
    """One row per slow interval at 2.0."""
    slow = Slow(fleet, drive_hours, raid_hours)
    result = []
    for interval in intervals:
        if interval["threshold"] != 2.0:
            continue
        hours = [slow.row_of[interval["drive_id"], interval["started_at"] + number * HOUR] for number in range(interval["interval_hours"])]
        cause, evidence = next((cause, found) for cause, ask in rules(slow, hours, interval) if (found := ask()) is not None)
        kept = {name: interval[name] for name in ("drive_id", "started_at", "raid_group_id", "kind", "interval_hours")}
        result.append({**kept, "cause": cause, "evidence": evidence})
    return result


CAUSES = (
    "workload_rate", "workload_size", "drive_event", "rebuild_or_scrub", "maintenance", "whole_group", "neighbours", "latency_quantum",
    "cohort", "censored", "unexplained",
)  # fmt: skip


def cause_shares(causes: list[Record]) -> list[Record]:
    """Every cause of every kind, over all weeks and by the week an interval begins in; also the causes that did not occur."""
    parts: dict[tuple[str, datetime | None], list[Record]] = defaultdict(list)
    for row in causes:
        day = datetime.combine(row["started_at"].date(), datetime.min.time())
        for week in (None, day - timedelta(days=day.weekday())):
            parts[row["kind"], week].append(row)
    return [share_of(rows, kind, week, cause) for (kind, week), rows in parts.items() for cause in CAUSES]


def share_of(rows: list[Record], kind: str, week: datetime | None, cause: str) -> Record:
    result = {"cause": cause, "kind": kind, "week_utc": week, "raid_group_count": len({row["raid_group_id"] for row in rows})}
    for name, total, weight in (
        ("interval", "interval_count", lambda row: 1),
        ("slow_hour", "slow_hours", lambda row: row["interval_hours"]),
    ):
        clusters: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for row in rows:
            clusters[row["raid_group_id"]][0] += weight(row) if row["cause"] == cause else 0
            clusters[row["raid_group_id"]][1] += weight(row)
        hits, size = (sum(cluster[place] for cluster in clusters.values()) for place in (0, 1))
        low, high = wilson(hits / size, float(effective_size(hits, size, [(x, n) for x, n in clusters.values()])))
        result |= {
            total: hits,
            f"all_{total}": size,
            f"{name}_share": hits / size,
            f"{name}_share_low": 0.0 if hits == 0 else low,
            f"{name}_share_high": 1.0 if hits == size else high,
        }
    return result
