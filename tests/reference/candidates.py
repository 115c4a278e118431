"""Which drives to replace, computed the slow way: every week boundary by itself, from lists of hours before it.

`expectations()` is given what a fleet did, hour by hour; nothing here is shared with the models but the thresholds of dbt_project.yml.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from .costs import week_of

Record = dict[str, Any]
HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
HISTORY, HALF_LIFE, TRAINING, PRIOR = 26, 4, 26, 500
LEVELS, BANDS, CHRONIC = (1, 4, 16, 64), (0.5, 2, 8), (0.1, 0.5, 0.9)
CLASSES = ("level", "recency", "persistence", "recurrence", "together", "chronic", "wait", "replug", "age", "model")


@dataclass(frozen=True)
class Facts:
    """What a fleet did: hours with a slowdown (drive_id, raid_group_id, hour_utc, slowdown), tail hours that a drive caused
    (drive_id, hour_utc), unplugs and replugs (drive_id, event_type, occurred_at), inventory as it was delivered, the valid
    hours of every RAID group."""

    hours: list[Record]
    caused: list[Record]
    events: list[Record]
    inventory: list[Record]
    valid_hours: dict[str, set[datetime]]

    def about(self, drive: str, hour: datetime) -> Record:
        """What inventory had said of a drive by the end of an hour; empty where it said nothing."""
        periods = [row for row in self.inventory if row["drive_id"] == drive]
        begun = [row for row in periods if row["valid_from"] is None or row["valid_from"] < hour + HOUR]
        return max(begun, key=lambda row: row["valid_from"] or datetime.min, default={})


def below(value: float, edges: Iterable[float]) -> str:
    return next((f"below {edge}" for edge in edges if value < edge), f"{list(edges)[-1]} and more")


def panel(facts: Facts) -> list[Record]:
    """Every drive at every boundary: its classes and its own rate."""
    until = max(hour for hours in facts.valid_hours.values() for hour in hours) + HOUR
    valid_days = {(group, hour.date()) for group, hours in facts.valid_hours.items() for hour in hours}
    of_drive: dict[str, list[Record]] = defaultdict(list)
    for row in facts.hours:
        of_drive[row["drive_id"]].append(row)
    slow = [row for row in facts.hours if row["slowdown"] >= 2]
    crowd = Counter((*place, row["hour_utc"]) for row in slow for place in places(row, facts))
    caused: dict[str, list[datetime]] = defaultdict(list)
    for row in facts.caused:
        caused[row["drive_id"]].append(row["hour_utc"])
    result = []
    for drive, rows in of_drive.items():
        rows.sort(key=lambda row: (row["hour_utc"].date(), row["raid_group_id"]))
        boundary = week_of(rows[0]["hour_utc"]) + WEEK
        first = boundary
        while boundary <= until:
            before = [row for row in rows if row["hour_utc"] < boundary]
            if before and before[-1]["hour_utc"] >= boundary - WEEK:
                about = facts.about(drive, boundary - HOUR)
                recent = [row for row in before if row["hour_utc"] >= boundary - 4 * WEEK]
                slows = sorted(row["hour_utc"] for row in before if row["slowdown"] >= 2)
                slow_28 = [row for row in recent if row["slowdown"] >= 2]
                again = sum(1 for one, two in pairwise(slows) if two >= boundary - 4 * WEEK and 2 <= (two - one) / timedelta(hours=1) <= 24)
                together = sum(any(crowd[*place, row["hour_utc"]] >= 3 for place in places(row, facts)) for row in slow_28)
                tails = [h for h in caused[drive] if h < boundary]
                seen = min((boundary - first) // WEEK + 1, HISTORY)
                weights = sum(
                    round(1e6 * 0.5 ** (((boundary - week_of(h)) // WEEK - 1) / HALF_LIFE)) for h in tails if h >= boundary - HISTORY * WEEK
                )
                own = 4 * weights / 1e6 * (1 - 0.5 ** (1 / HALF_LIFE)) / (1 - 0.5 ** (seen / HALF_LIFE))
                events = [event for event in facts.events if event["drive_id"] == drive and event["occurred_at"] < boundary]
                pulled, back = (
                    max((hour_of(event["occurred_at"]) for event in events if event["event_type"] == name), default=None)
                    for name in ("unplug", "replug")
                )
                age = (boundary.date() - about["deployed_on"]).days if about.get("deployed_on") else None
                after = [h for h in caused[drive] if boundary <= h < boundary + 4 * WEEK]
                group = before[-1]["raid_group_id"]
                is_known = boundary + 4 * WEEK <= until and (group, (boundary + 27 * DAY).date()) in valid_days
                last = max(tails, default=None)
                result.append(
                    {
                        "drive_id": drive,
                        "boundary_utc": boundary,
                        "kind": about.get("kind") or "unknown",
                        "raid_group_id": group,
                        "own": own,
                        "slow_hours_28d": len(slow_28),
                        "together_hours_28d": together,
                        "tail_hours_caused_28d": sum(h >= boundary - 4 * WEEK for h in tails),
                        "now": max(
                            (row["slowdown"] for row in recent if row["slowdown"] >= 2 and row["hour_utc"] >= boundary - DAY), default=0
                        ),
                        "y": len(after) if is_known else None,
                        "level": "none" if own == 0 else below(own, LEVELS),
                        "recency": recency(None if last is None else boundary - last),
                        "persistence": str(len({week_of(h) for h in tails if h >= boundary - 4 * WEEK})),
                        "recurrence": "not slow" if not slow_28 else "none within a day" if not again else "some" if again < 3 else "often",
                        "together": "together" if 2 * together > len(slow_28) else "alone",
                        "chronic": below(sum(row["slowdown"] >= 1.2 for row in recent) / len(recent), CHRONIC),
                        "weeks_28d": len({week_of(h) for h in tails if h >= boundary - 4 * WEEK}),
                        "quiet": None if last is None else boundary - last,
                        "relapse": relapse(slows, back),
                        "wait": waited(slows, pulled),
                        "replug": came_back(slows, back),
                        "age": "unknown" if age is None or age < 0 else str(int(age // 365.25) + 1),
                        "model": about.get("model") or "unknown",
                    }
                )
            boundary += WEEK
    return result


def recency(since: timedelta | None) -> str:
    if since is None:
        return "never"
    return next((name for name, span in (("day", DAY), ("week", WEEK), ("28 days", 4 * WEEK)) if since <= span), "earlier")


def hour_of(instant: datetime) -> datetime:
    return instant.replace(minute=0, second=0, microsecond=0)


def waited(slows: list[datetime], pulled: datetime | None) -> str:
    """How long a drive had been slow, or since when it last fell slow, when it was last unplugged."""
    if pulled is None:
        return "never unplugged"
    begun = [hour for hour in slows if hour <= pulled and hour - HOUR not in slows]
    if not begun:
        return "not slow before"
    return next((name for name, span in (("within a day", DAY), ("within a week", WEEK)) if pulled - begun[-1] <= span), "later")


def relapse(slows: list[datetime], back: datetime | None) -> timedelta | None:
    """How long after its last replug a drive was slow again; None where it was not, or was never replugged."""
    return next((hour - back for hour in slows if back is not None and hour >= back), None)


def came_back(slows: list[datetime], back: datetime | None) -> str:
    """How soon a drive was slow after its last replug."""
    if back is None:
        return "never replugged"
    again = relapse(slows, back)
    return "not slow since" if again is None else "slow within a day" if again <= DAY else "slow later"


def verdict(row: Record, cost: float) -> tuple[str, str]:
    """What docs/candidates.md says of a drive whose replacement costs so many tail hours, and the rule that says `replace`."""
    slow, shared = row["slow_hours_28d"], row["together_hours_28d"]
    is_mostly_shared = shared > slow / 2
    if not slow:
        return "leave", "none"
    if is_mostly_shared and row["expected"] >= 1:
        return "check path", "none"
    if row["low"] is not None and row["low"] > cost:
        return "replace", "expectation"
    relapsed = row["relapse"] is not None and row["relapse"] <= DAY
    if (
        not is_mostly_shared
        and row["tail_hours_caused_28d"] >= 4 * cost
        and row["quiet"] is not None
        and row["quiet"] <= WEEK
        and (row["weeks_28d"] >= 3 or relapsed)
    ):
        return "replace", "evidence"
    return ("watch" if row["expected"] >= 1 else "leave"), "none"


def places(row: Record, facts: Facts) -> list[tuple[str, str]]:
    about = facts.about(row["drive_id"], row["hour_utc"])
    host, enclosure, site = (about.get(name) for name in ("host", "enclosure", "site"))
    # another host may call its own by the same name
    shelf = None if host is not None else f"{site}/{enclosure}" if site and enclosure else enclosure
    named = [("raid group", row["raid_group_id"]), ("host", host), ("enclosure", shelf)]
    return [(place, name) for place, name in named if name is not None]


def expectations(facts: Facts) -> list[Record]:
    """Every drive at every boundary with what was expected of it, its interval, and what came (`y`, None where it is not known)."""
    rows = panel(facts)
    for kind in {row["kind"] for row in rows}:
        of_kind = [row for row in rows if row["kind"] == kind]
        for boundary in sorted({row["boundary_utc"] for row in of_kind}):
            known = [
                row
                for row in of_kind
                if row["y"] is not None and boundary - (TRAINING + 3) * WEEK <= row["boundary_utc"] <= boundary - 4 * WEEK
            ]
            here = [row for row in of_kind if row["boundary_utc"] == boundary]
            expect(here, known)
            enclose(here, [row for row in known if row["n"] > 0])
    return rows


def expect(here: list[Record], known: list[Record]) -> None:
    """What is expected of the drives of a boundary, by outcomes that were known then."""
    n, y = len(known), sum(row["y"] for row in known)
    xs = [round(100 * row["own"]) / 100 for row in known]
    variation = n * sum(x * x for x in xs) - sum(xs) ** 2
    covariation = n * sum(x * row["y"] for x, row in zip(xs, known, strict=True)) - sum(xs) * y
    share = min(max(covariation / variation, 0.0), 1.0) if variation > 1e-9 else 0.5
    mean, mean_own = (y / n, sum(xs) / n) if n else (0.0, 0.0)
    base = max(mean - share * mean_own, 0.05 * mean)
    expected = [base + share * x for x in xs]
    for row in here:
        row["n"], row["expected"] = n, base + share * round(100 * row["own"]) / 100
    for name in CLASSES:
        came: dict[str, float] = defaultdict(float)
        hoped: dict[str, float] = defaultdict(float)
        for row, value in zip(known, expected, strict=True):
            came[row[name]] += row["y"]
            hoped[row[name]] += value
        factors = {value: (came[value] + PRIOR) / (hoped[value] + PRIOR) for value in came}
        expected = [value * factors[row[name]] for row, value in zip(known, expected, strict=True)]
        for row in here:
            row["expected"] *= factors.get(row[name], 1.0)


def enclose(here: list[Record], known: list[Record]) -> None:
    """The interval of the expectation and that of the one drive."""
    for band in {below(row["expected"], BANDS) for row in here}:
        alike = [row for row in known if below(row["expected"], BANDS) == band]
        tenths = sorted(min(math.ceil(10 * row["y"] / row["expected"]), 10000) for row in alike if row["expected"] > 0)
        low, high = (len(tenths) + 1) // 10, -(-9 * (len(tenths) + 1) // 10)
        of_group: dict[str, list[float]] = defaultdict(lambda: [0, 0])
        for row in alike:
            of_group[row["raid_group_id"]][0] += row["y"]
            of_group[row["raid_group_id"]][1] += row["expected"]
        e, count = sum(e for _, e in of_group.values()), len(of_group)
        ratio = sum(y for y, _ in of_group.values()) / e if e else 0.0
        squares = sum((y - ratio * e) ** 2 for y, e in of_group.values())
        # what all of them were off by, and what each was by chance
        error = math.hypot(ratio - 1, math.sqrt(squares * count / (count - 1)) / e) if count >= 5 and e else None
        for row in here:
            if below(row["expected"], BANDS) == band:
                has_end = bool(tenths) and high <= len(tenths)
                row["tail_hours_low"] = row["expected"] * (max(tenths[low - 1] - 1, 0) / 10 if low >= 1 else 0.0) if has_end else None
                row["tail_hours_high"] = row["expected"] * tenths[high - 1] / 10 if has_end else None
                row["low"] = None if error is None else row["expected"] * max(1 - 1.2816 * error, 0.0)
                row["high"] = None if error is None else row["expected"] * (1 + 1.2816 * error)


def backtest(rows: list[Record]) -> dict[tuple[str, datetime, float, str], float]:
    """Tail hours avoided by kind, boundary, share of drives and ranking."""
    boundaries: dict[tuple[str, datetime], list[Record]] = defaultdict(list)
    for row in rows:
        if row["y"] is not None and row["n"] > 0:
            boundaries[row["kind"], row["boundary_utc"]].append(row)
    result = {}
    for (kind, boundary), ranked in boundaries.items():
        for share in (0.002, 0.01, 0.05):
            picked = max(math.ceil(share * len(ranked)), 1)
            for rule, key in (("model", "expected"), ("most_slow_hours_28d", "slow_hours_28d"), ("slowest_now", "now")):
                order = sorted(ranked, key=lambda row: (-row[key], row["drive_id"]))
                result[kind, boundary, share, rule] = float(sum(row["y"] for row in order[:picked]))
            result[kind, boundary, share, "random"] = sum(row["y"] for row in ranked) * picked / len(ranked)
    return result


HORIZONS, PRIOR_DRIVES = (1, 7, 28), 10
SLOW_HOURS, EXPECTED = (1, 3, 10, 30, 100), (0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16)
PROBABILITIES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
ALIKE: dict[str, Callable[[Record], str]] = {
    "base_rate": lambda row: "all",
    "slow_28d": lambda row: "slow" if row["slow_hours_28d"] else "not slow",
    "most_slow_hours_28d": lambda row: below(row["slow_hours_28d"], SLOW_HOURS),
    "model": lambda row: below(row["expected"], EXPECTED),
}
"""Which drives a rule holds to be alike."""


def forecasts(rows: list[Record], facts: Facts) -> dict[tuple[str, int, str], list[tuple[str, float, bool]]]:
    """By kind, days and rule: RAID group, probability and what came, of every drive at every boundary. rows: of `expectations`."""
    last = max(hour for hours in facts.valid_hours.values() for hour in hours)
    valid_days = {(group, hour.date()) for group, hours in facts.valid_hours.items() for hour in hours}
    slow = {(row["drive_id"], row["raid_group_id"], row["hour_utc"]) for row in facts.hours if row["slowdown"] >= 2}
    begins = {(drive, hour) for drive, group, hour in slow if (drive, group, hour - HOUR) not in slow}
    result = {}
    for days in HORIZONS:
        ends = {id(row): row["boundary_utc"] + days * DAY for row in rows}
        known = [row for row in rows if ends[id(row)] <= last + HOUR and (row["raid_group_id"], (ends[id(row)] - DAY).date()) in valid_days]
        came = {
            id(row): any((row["drive_id"], row["boundary_utc"] + hours * HOUR) in begins for hours in range(24 * days)) for row in known
        }
        for kind in {row["kind"] for row in known}:
            for rule, alike in ALIKE.items():
                said = []
                for row in (row for row in known if row["kind"] == kind):
                    past = [
                        (alike(other) == alike(row), came[id(other)])
                        for other in known
                        if other["kind"] == kind and 4 * WEEK <= row["boundary_utc"] - other["boundary_utc"] <= (TRAINING + 3) * WEEK
                    ]
                    if past:
                        rate = sum(slow for _, slow in past) / len(past)
                        same = [slow for is_alike, slow in past if is_alike]
                        probability = (sum(same) + PRIOR_DRIVES * rate) / (len(same) + PRIOR_DRIVES)
                        said.append((row["raid_group_id"], probability, came[id(row)]))
                result[kind, days, rule] = said
    return result


def scores(foretold: dict[tuple[str, int, str], list[tuple[str, float, bool]]]) -> dict[tuple[str, int, str], Record]:
    """The Brier score of each rule, and what it saves of the base rate's and of that of `slow in the last 28 days`."""
    brier = {key: sum((came - chance) ** 2 for _, chance, came in said) / len(said) for key, said in foretold.items() if said}
    return {
        (kind, days, rule): {
            "forecast_count": len(foretold[kind, days, rule]),
            "slow_count": sum(came for *_, came in foretold[kind, days, rule]),
            "brier_score": score,
            "skill_ratio": 1 - score / brier[kind, days, "base_rate"],
            "gain": brier[kind, days, "slow_28d"] - score,
        }
        for (kind, days, rule), score in brier.items()
    }


def reliability(foretold: dict[tuple[str, int, str], list[tuple[str, float, bool]]]) -> dict[tuple[str, int, str, str], Record]:
    """What came in each band of probability."""
    bands: dict[tuple[str, int, str, str], list[tuple[float, bool]]] = defaultdict(list)
    for key, said in foretold.items():
        for _, chance, came in said:
            bands[(*key, below(chance, PROBABILITIES))].append((chance, came))
    return {
        key: {
            "forecast_count": len(of),
            "mean_probability": sum(chance for chance, _ in of) / len(of),
            "slow_count": sum(came for _, came in of),
            "slow_ratio": sum(came for _, came in of) / len(of),
        }
        for key, of in bands.items()
    }
