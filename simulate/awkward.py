"""Awkward deliveries on request: a few records per case and day, each listed in the truth.

`moved`, `unlisted` and `quantised` change the fleet before it is run; the other cases edit the rows of a day. Every such
case has its own hours of the day (hour number modulo the number of cases), so no record shows two of them.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from simulate.groups import FAR_FUTURE, Group, Member, instant
from simulate.operators import Event, GroupHistory
from simulate.parameters import KINDS
from simulate.slowness import Episode
from simulate.streams import Purpose, stream
from simulate.telemetry import DRIVE_HOURS_SCHEMA

Row = dict[str, Any]

ROW_CASES = ("late", "duplicated", "conflicting", "missing", "idle", "partly_observed", "zero", "nan")
FLEET_CASES = ("moved", "unlisted", "quantised")
AWKWARD_CASES = ROW_CASES + FLEET_CASES
PLANTED_CASES = ("failing", "swapped", "sudden", "mild", "updated", "boot", "unequal")
"""Drives whose story is known, for a first look: not among `all`, as no telemetry is awkward for them. One for which a fleet has too few
groups or hours is left out; the truth lists those that are there.
"""
FAILING_EVERY_HOURS, FAILING_HOURS, FAILING_EXCESS = 31.0, 6.0, 3.5
"""Such a drive is slow this often, for so long, by so much (ratio)."""
FAILING_DAYS, SWAPPED_DAYS, SWAP_HOURS, SUDDEN_HOURS = 40, 24, 3.0, 16.0
"""One fails for the first number of days, up to the end of the span; another did until it was replaced the second number of days before
the end, its slot being empty for the hours of the third; another one becomes slow in the last hours, the fourth."""
MILD_EXCESS = 0.4
"""Extra latency of one that is a little slow for good (ratio)."""
BOOT_DRIVES, BOOT_SHARE, BOOT_FACTOR = 2, 1e-5, 6.0
"""Healthy boot drives of a group: their number, their share of the I/Os of a data drive, and how much longer each takes (ratios)."""
LEAST_LOAD, GREATEST_LOAD = 0.001, 3.0
"""Share of an even load of the drives of another, of which the least are log devices and spares, from the one to the other (ratio)."""
HOURS_PER_CASE_AND_DAY = 3
AWKWARD_DAYS = 7
"""Only this many first days of the span carry awkward rows; a long fleet needs no more of them."""

TRUTH_SCHEMA: dict[str, pl.DataType] = {
    "case": pl.String(),
    "drive_id": pl.String(),
    "hour_utc": pl.Datetime("us"),
    "what": pl.String(),
}


@dataclass
class Awkward:
    """The cases asked for, and what was done so far."""

    cases: Collection[str]
    seed: int
    start: datetime
    done: list[tuple[str, str, datetime | None, str]] = field(default_factory=list)
    data_drives: set[str] = field(default_factory=set)

    def change_fleet(self, groups: list[Group], histories: list[GroupHistory], hours: int) -> None:
        """Move a drive, hide one from inventory, give a group a coarse timer; note which drives hold data."""
        if "quantised" in self.cases:
            group = next((g for g in groups if g.kind == "ssd"), groups[0])
            group.is_coarse = True
            self.done += [("quantised", m.drive_id, None, "latencies are multiples of 250 us") for m in group.members]
        if "unlisted" in self.cases:
            member = groups[-1].members[0]
            for same_slot in groups[-1].members:
                same_slot.is_listed = same_slot.is_listed and same_slot.slot != member.slot
            self.done.append(("unlisted", member.drive_id, None, "reports rows, in no inventory record"))
        if "moved" in self.cases:
            self._move(groups, histories, hours)
        if "failing" in self.cases:
            self._fail(groups, histories, hours, hours - 24.0 * FAILING_DAYS, float(hours), nth=0)
        if "swapped" in self.cases and hours > 24 * SWAPPED_DAYS:
            self._swap(groups, histories, hours)
        if "sudden" in self.cases:
            self._fail(groups, histories, hours, hours - SUDDEN_HOURS, float(hours), nth=2, case="sudden")
        for _, member in self._steady(groups, hours)[3:4] if "mild" in self.cases else ():
            member.fail_slow_excess = MILD_EXCESS
            self.done.append(("mild", member.drive_id, None, f"{1 + MILD_EXCESS:g} times its latency, for good"))
        self._unequal(groups, hours)
        self.data_drives = {m.drive_id for g in groups for m in g.members if m.role == "data"}

    def _move(self, groups: list[Group], histories: list[GroupHistory], hours: int) -> None:
        """Half way through the span a data drive goes on in another group of its kind."""
        at = hours // 2
        for kind in KINDS:
            steady = [i for i, g in enumerate(groups) if g.kind == kind and g.joined_at < at and g.data_width > 3]
            homes = [i for i, g in enumerate(groups) if g.kind == kind and g.joined_at < at]
            for i in steady:
                j = next((home for home in homes if home != i), None)
                stable = (m for m in groups[i].members if m.role == "data" and m.active_to == FAR_FUTURE and m.is_listed)
                member = next((m for m in stable if m.active_from < at and not m.outages), None)
                if j is None or member is None:
                    continue
                moved = replace(member, slot=max(m.slot for m in groups[j].members) + 2, active_from=float(at), outages=[])
                member.active_to = float(at)
                groups[j].members.append(moved)
                histories[j].episodes += [(moved, e) for m, e in histories[i].episodes if m is member and e.ended_at > at]
                histories[i].episodes = [(m, e) for m, e in histories[i].episodes if m is not member or e.started_at < at]
                what = f"from {groups[i].raid_group_id} to {groups[j].raid_group_id}"
                self.done.append(("moved", member.drive_id, instant(self.start, at), what))
                break

    def _fail(
        self, groups: list[Group], histories: list[GroupHistory], hours: int, since: float, until: float, nth: int, case: str = "failing"
    ) -> tuple[int, Member] | None:
        """A data drive of the nth of the disk groups that can spare one is slow again and again.

        Returns: its group and itself, null where there are fewer such groups.
        """
        steady = self._steady(groups, hours)
        if nth >= len(steady):
            return None
        i, member = steady[nth]
        histories[i].episodes = [(m, e) for m, e in histories[i].episodes if m is not member]
        at, fate = max(since, 0.0) + 7.0, 0
        while at < until:
            episode = Episode(at, min(at + FAILING_HOURS, until), FAILING_EXCESS, "background", fate)
            histories[i].episodes.append((member, episode))
            at, fate = at + FAILING_EVERY_HOURS, fate + 1
        self.done.append(
            (
                case,
                member.drive_id,
                instant(self.start, max(since, 0.0)),
                f"slow for {FAILING_HOURS:g} h every {FAILING_EVERY_HOURS:g} h",
            )
        )
        return i, member

    @staticmethod
    def _steady(groups: list[Group], hours: int) -> list[tuple[int, Member]]:
        """A drive of every disk group that can spare one."""
        found = ((i, [m for m in group.members if _is_steady(m, hours)]) for i, group in enumerate(groups) if group.kind == "disk")
        return [(i, members[0]) for i, members in found if members and groups[i].data_width > 4 and groups[i].joined_at <= 0]

    def _unequal(self, groups: list[Group], hours: int) -> None:
        """Two drives of a group only boot the host; those of another have loads far apart."""
        steady = [i for i, _ in self._steady(groups, hours)]
        for i in steady[4:5] if "boot" in self.cases else ():
            for member in [m for m in groups[i].members if _is_steady(m, hours)][:BOOT_DRIVES]:
                member.rate_share *= BOOT_SHARE
                member.latency_factor *= BOOT_FACTOR
                what = f"healthy, {BOOT_SHARE:g} of its peers' I/Os, {BOOT_FACTOR:g} times as long"
                self.done.append(("boot", member.drive_id, None, what))
        for i in steady[5:6] if "unequal" in self.cases else ():
            members = [m for m in groups[i].members if _is_steady(m, hours)]
            for n, member in enumerate(members):
                load = LEAST_LOAD * (GREATEST_LOAD / LEAST_LOAD) ** (n / max(len(members) - 1, 1))
                member.rate_share *= load
                self.done.append(("unequal", member.drive_id, None, f"{load:.3g} times an even share of the load"))

    def _swap(self, groups: list[Group], histories: list[GroupHistory], hours: int) -> None:
        """A drive of the second such group was failing, too, until an operator put another one into its slot."""
        at = hours - 24.0 * SWAPPED_DAYS
        failing = self._fail(groups, histories, hours, at - 24.0 * FAILING_DAYS, at, nth=1)
        if failing is None:
            return
        i, old = failing
        new = replace(old, drive_id=f"{old.drive_id[:-1]}Z", active_from=at + SWAP_HOURS, outages=[], frailty=1.0, is_replacement=True)
        old.active_to = at
        groups[i].members.append(new)
        histories[i].events = [e for e in histories[i].events if e.drive_id != old.drive_id or e.at < at]
        histories[i].events += [
            Event(at, old.drive_id, "unplug", old.slot),
            Event(at + SWAP_HOURS, new.drive_id, "replacement", new.slot, detail=f"replaces {old.drive_id}"),
        ]
        self.done.append(("swapped", old.drive_id, instant(self.start, at), f"replaced by {new.drive_id}"))

    def edit_day(self, frame: pl.DataFrame, day: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The day's rows with the row cases worked in, and the rows that are delivered late."""
        late: list[Row] = []
        if day >= AWKWARD_DAYS or not frame.height:
            return frame, frame.clear()
        numbered = frame.with_row_index("row")
        removed: list[int] = []
        added: list[Row] = []
        rng = stream(self.seed, "disk", 0, Purpose.AWKWARD, day)
        for number, case in enumerate(ROW_CASES):
            hours = [h for i, h in enumerate(frame["hour_utc"].unique().sort()) if i % len(ROW_CASES) == number]
            for nth, hour in enumerate(hours[:HOURS_PER_CASE_AND_DAY]):
                of_hour = numbered.filter(pl.col("hour_utc") == hour, pl.col("drive_id").is_in(self.data_drives))
                wide = of_hour.group_by("raid_group_id").len().filter(pl.col("len") >= 3)["raid_group_id"].sort()
                draw = rng.random()  # drawn for every case, so that asking for one more changes no other
                if case not in self.cases or not len(wide):
                    continue
                rows = of_hour.filter(pl.col("raid_group_id") == wide[int(draw * len(wide))]).to_dicts()
                kept, held, notes = _EDITS[case](nth, [{k: v for k, v in row.items() if k != "row"} for row in rows])
                removed += [row["row"] for row in rows]
                added += kept
                late += held
                self.done += [(case, drive_id, hour, what) for drive_id, what in notes]
        kept_frame = numbered.filter(~pl.col("row").is_in(removed)).drop("row")
        edited = pl.concat([kept_frame, pl.DataFrame(added, schema=DRIVE_HOURS_SCHEMA)])
        return (
            edited.sort("hour_utc", "raid_group_id", "drive_id", maintain_order=True),
            pl.DataFrame(late, schema=DRIVE_HOURS_SCHEMA),
        )

    def update(self, drives: pl.DataFrame, hours: int) -> pl.DataFrame:
        """Inventory; with the case `updated` a group's drives get another firmware half way through, which changes nothing else."""
        if "updated" not in self.cases:
            return drives
        at = self.start + timedelta(hours=hours // 2)
        is_there = (
            (pl.col("role") == "data") & (pl.col("valid_from") < at) & pl.col("valid_to").is_null() & pl.col("firmware").is_not_null()
        )
        group = drives.filter(is_there)["raid_group_id"].max() or ""
        is_updated = is_there & (pl.col("raid_group_id") == group)
        after = drives.filter(is_updated).with_columns(valid_from=pl.lit(at), firmware=pl.col("firmware") + "U")
        before = drives.with_columns(valid_to=pl.when(is_updated).then(pl.lit(at)).otherwise("valid_to"))
        self.done += [("updated", row["drive_id"], at, f"firmware {row['firmware']}") for row in after.to_dicts()]
        return pl.concat([before, after]).sort("raid_group_id", maintain_order=True)

    def hold_back(self, drives: pl.DataFrame, events: pl.DataFrame) -> tuple[pl.DataFrame, ...]:
        """Inventory and events now and late: with the case `late`, the last record of each comes late."""
        count = 1 if "late" in self.cases else 0
        now = []
        for name, frame in (("inventory", drives), ("event", events)):
            held = frame.tail(count) if frame.height > 1 else frame.clear()
            self.done += [("late", drive_id, None, f"{name} record comes late") for drive_id in held["drive_id"]]
            now += [frame.head(frame.height - held.height), held]
        return tuple(now)

    def truth(self) -> pl.DataFrame:
        """One row per thing done: case, drive, hour (null = the whole span), what."""
        return pl.DataFrame(self.done, schema=TRUTH_SCHEMA, orient="row")


def _is_steady(member: Member, hours: int) -> bool:
    """A data drive that inventory lists and that stays where it is all the span."""
    return member.role == "data" and member.is_listed and member.active_from <= 0 and member.active_to > hours and not member.outages


Notes = list[tuple[str, str]]
Edited = tuple[list[Row], list[Row], Notes]


def _late(_: int, rows: list[Row]) -> Edited:
    held = [row | {"collected_at": row["collected_at"] + timedelta(hours=26)} for row in rows]
    return [], held, [(row["drive_id"], "in late/, 26 hours later") for row in held]


def _duplicated(_: int, rows: list[Row]) -> Edited:
    return rows + rows[:2], [], [(row["drive_id"], "sent twice, equal in every column") for row in rows[:2]]


def _conflicting(nth: int, rows: list[Row]) -> Edited:
    first = rows[0]
    other, what = (
        (
            first | {"read_ios": first["read_ios"] + 7, "collected_at": first["collected_at"] + timedelta(minutes=30)},
            "the later one counts",
        ),
        (first | {"read_ios": first["read_ios"] + 7, "collected_at": None}, "the one without collected_at is the oldest"),
        (first | {"write_ios": first["write_ios"] + 7}, "same collected_at: the greater write_ios counts"),
    )[nth % 3]
    for direction in ("read", "write"):  # 7 I/Os where there were none need a latency
        if other[f"{direction}_ios"] and other[f"{direction}_latency_us"] is None:
            other[f"{direction}_latency_us"] = 1000.0
    return [*rows, other], [], [(first["drive_id"], f"two records, {what}")]


def _missing(nth: int, rows: list[Row]) -> Edited:
    gone = rows if nth == 0 else rows[:1]
    what = "the whole group sent nothing" if nth == 0 else "this drive sent nothing"
    return [row for row in rows if row not in gone], [], [(row["drive_id"], what) for row in gone]


def _idle(nth: int, rows: list[Row]) -> Edited:
    quiet = rows if nth == 0 else rows[:1]
    stale = None if nth == 0 else 0.0 if nth == 1 else 1234.5
    zero = {"read_ios": 0, "write_ios": 0, "read_blocks": 0, "write_blocks": 0, "read_latency_us": stale, "write_latency_us": stale}
    what = f"no I/O in {'the whole group' if nth == 0 else 'this drive'}, latency {'null' if stale is None else stale}"
    return [row | zero if row in quiet else row for row in rows], [], [(row["drive_id"], what) for row in quiet]


def _partly_observed(nth: int, rows: list[Row]) -> Edited:
    coverage = (0.3, 0.5, 0.8)[nth % 3]
    edited = [dict(row) for row in rows]
    for row in edited[:2]:
        row["coverage"] = coverage
        for direction in ("read", "write"):
            for column in (f"{direction}_ios", f"{direction}_blocks"):
                row[column] = round(row[column] * coverage)
            if not row[f"{direction}_ios"]:
                row[f"{direction}_latency_us"] = None
    return edited, [], [(row["drive_id"], f"coverage {coverage}") for row in edited[:2]]


def _zero(nth: int, rows: list[Row]) -> Edited:
    hit = rows if nth == 0 else rows[:1]
    what = "latency 0 in the whole group: its median is 0" if nth == 0 else "latency 0, peers above"
    edited = []
    for row in rows:
        changed = {c: 0.0 for c in ("read_latency_us", "write_latency_us") if row[c] is not None} if row in hit else {}
        edited.append(row | changed)
    return edited, [], [(row["drive_id"], what) for row in hit]


def _nan(nth: int, rows: list[Row]) -> Edited:
    wrong: float | None = (float("nan"), float("inf"), -1.0)[nth % 3]
    first, second = rows[0] | {"read_ios": max(rows[0]["read_ios"], 1), "read_latency_us": wrong}, dict(rows[1])
    second |= {"write_ios": max(second["write_ios"], 1), "write_latency_us": None}
    notes = [(first["drive_id"], f"read latency {wrong}"), (second["drive_id"], "write latency null with I/Os")]
    return [first, second, *rows[2:]], [], notes


_EDITS: dict[str, Callable[[int, list[Row]], Edited]] = {
    "late": _late,
    "duplicated": _duplicated,
    "conflicting": _conflicting,
    "missing": _missing,
    "idle": _idle,
    "partly_observed": _partly_observed,
    "zero": _zero,
    "nan": _nan,
}
