"""Work on md arrays, as node_exporter shows it: an event of the drives of that array, and of no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from ingest import ingest
from tests.ingest.conftest import Warehouse
from tests.ingest.prometheus_server import Server, counted_drives, labels, serving

START = datetime(2026, 1, 5, 10)
UNIX = 1_767_607_200
WORK = ("recovering", "resync", "check")
UUIDS = {"md0": "aaaaaaaa:aaaaaaaa:aaaaaaaa:aaaaaaaa", "md1": "bbbbbbbb:bbbbbbbb:bbbbbbbb:bbbbbbbb"}
MEMBERS = {"md0": "abcd", "md1": "efgh"}
MDSTAT = "TS {at}\n" + "\n".join(
    f"{md} : active raid10 {' '.join(f'sd{d}[{n}]' for n, d in enumerate(drives))}\n  99 blocks [4/4] [UUUU]\n  uuid {UUIDS[md]}"
    for md, drives in MEMBERS.items()
) + "\nunused devices: <none>\n"  # fmt: skip

Doing = Callable[[float], str]
"""By hours after START, what an array does."""


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def scrapes(hours: tuple[float, float], doing: dict[str, Doing], members: Sequence[str] = ("md0", "md1"), slow: Sequence[str] = ()) -> str:
    """A scrape of web1 every half hour of [from, to]: drives of two arrays, those `slow` from the first hour on three times as slow."""
    text: list[str] = []
    for n in range(round(hours[0] * 2), round(hours[1] * 2) + 1):
        for drive in "abcdefgh":
            where, ios = f'{{instance="web1:9100",device="sd{drive}"}}', 1000 * n
            seconds = 0.004 * (ios + (2 * max(ios - 2000, 0) if drive in slow else 0))
            counted = (("reads_completed", ios), ("writes_completed", ios), ("read_bytes", ios * 4096), ("written_bytes", ios * 4096),
                       ("read_time_seconds", seconds), ("write_time_seconds", seconds))  # fmt: skip
            text += [f"node_disk_{metric}_total{where} {value} {UNIX + 1800 * n}" for metric, value in counted]
        for md in members:
            text += [
                f'drivetail_md_member{{instance="web1:9100",md="{md}",device="sd{d}",uuid="{UUIDS[md]}",role="data"}} 1 {UNIX + 1800 * n}'
                for d in MEMBERS[md]
            ]
        for md, does in doing.items():
            text += [
                f'node_md_state{{instance="web1:9100",device="{md}",state="{state}"}} {int(does(n / 2) == state)} {UNIX + 1800 * n}'
                for state in sorted({"active", "inactive", *WORK, does(n / 2)})
            ]
    return "\n".join(text) + "\n"


def from_to(state: str, begun: float, ended: float) -> Doing:
    return lambda hour: state if begun <= hour < ended else "active"


def events(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    if not warehouse.live("drive_events").height:
        return []
    return warehouse.rows("drive_events", "drive_id event_type occurred_at ended_at raid_group_id detail is_alias")


@pytest.mark.parametrize(
    ("state", "kind", "said"),
    [
        ("check", "scrub", "check"),
        ("resync", "scrub", "resync"),
        ("recovering", "rebuild", "recovery"),
        ("reshaping", "rebuild", "reshape"),
    ],
)
def test_work_is_an_event_of_the_drives_of_its_array(state: str, kind: str, said: str, warehouse: Warehouse) -> None:
    summary = warehouse.land("prometheus", {"a.prom": scrapes((0, 6), {"md0": from_to(state, 2, 4.5), "md1": from_to("", 9, 9)})})
    assert events(warehouse) == [(f"web1/sd{d}", kind, at(2), at(4.5), UUIDS["md0"], f"md: {said}", True) for d in "abcd"]
    assert summary.files[0].notes == []


def test_work_that_goes_on_ends_with_its_last_reading(warehouse: Warehouse) -> None:
    """An array that was not seen for more than an hour is two times at work. A dump marks the end of a series with NaN."""
    stale = f'node_md_state{{instance="web1:9100",device="md0",state="check"}} NaN {UNIX + 7201}\n'
    text = stale + scrapes((0, 2), {"md0": from_to("check", 1, 9)}) + scrapes((3.5, 3.5), {"md0": from_to("check", 1, 9)})
    warehouse.land("prometheus", {"a.prom": text})
    said = "md: check, still running"
    spans = [(at(1), at(2)), (at(3.5), None)]
    assert events(warehouse) == [(f"web1/sd{d}", "scrub", *span, UUIDS["md0"], said, True) for d in "abcd" for span in spans]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_a_recovery_across_deliveries_is_one_event_in_any_order(order: Sequence[int], warehouse: Warehouse) -> None:
    doing = {"md0": lambda hour: "recovering" if 3 <= hour < 11 or hour >= 14 else "active", "md1": from_to("check", 2.5, 4)}
    parts = [(0, 4), (4.5, 8), (7, 15)]
    for number in order:
        warehouse.land("prometheus", {f"{number}.prom": scrapes(parts[number], doing)})  # type: ignore[arg-type]
    query = "select drive_id, event_type, occurred_at, ended_at, detail from marts.fct_drive_events order by all"
    recoveries = [(at(3), at(11), "md: recovery"), (at(14), at(15), "md: recovery, still running")]
    assert warehouse.built(query) == [
        *((f"web1/sd{d}", "rebuild", *recovery) for d in "abcd" for recovery in recoveries),
        *((f"web1/sd{d}", "scrub", at(2.5), at(4), "md: check") for d in "efgh"),
    ]


def test_work_on_an_array_holds_back_no_drive_of_another(warehouse: Warehouse) -> None:
    text = scrapes((0, 14), {"md0": from_to("recovering", 0, 15), "md1": from_to("", 9, 9)}, slow="bf")
    warehouse.land("prometheus", {"a.prom": text})
    assert warehouse.built("select subject_id, cleared_at from marts.fct_slow_alerts") == [("web1/sdf", None)]
    assert warehouse.built("select subject_id, held_back_by from status.fct_held_alerts") == [("web1/sdb", "rebuild or recovery")]


def test_an_array_without_known_drives_is_noted(warehouse: Warehouse) -> None:
    text = scrapes((0, 4), {"md0": from_to("check", 1, 3), "md1": from_to("check", 1, 3)}, members=["md1"])
    (note,) = warehouse.land("prometheus", {"a.prom": text}).files[0].notes
    assert "web1/md0" in note and "md1" not in note and "deploy/membership.sh" in note
    assert {event[4] for event in events(warehouse)} == {UUIDS["md1"]}


def test_two_arrays_whose_names_have_not_landed_hold_nothing_back(warehouse: Warehouse) -> None:
    """Two arrays of which only the UUIDs have landed are not told apart."""
    both = {"md0": from_to("check", 1, 3), "md1": from_to("check", 1, 3)}
    warehouse.land("mdadm", {"web1/mdstat": MDSTAT.format(at=UNIX)})
    (note,) = warehouse.land("prometheus", {"a.prom": scrapes((0, 4), both, members=[])}).files[0].notes
    assert "web1/md0, web1/md1" in note and events(warehouse) == []


@pytest.mark.parametrize(("uuid", "group"), [(f"  uuid {UUIDS['md0']}\n", UUIDS["md0"]), ("", "web1/md0")])
def test_the_drives_of_the_only_array_may_have_landed_before(uuid: str, group: str, warehouse: Warehouse) -> None:
    mdstat = f"TS {UNIX}\nmd0 : active raid10 sda[0] sdb[1]\n  99 blocks [2/2] [UU]\n{uuid}unused devices: <none>\n"
    warehouse.land("mdadm", {"web1/mdstat": mdstat})
    doing = {"md0": from_to("check", 1, 3)}
    assert warehouse.land("prometheus", {"a.prom": scrapes((0, 4), doing, members=[])}).files[0].notes == []
    assert events(warehouse) == [(f"web1/sd{d}", "scrub", at(1), at(3), group, "md: check", True) for d in "ab"]


def test_a_state_that_is_not_known_is_noted(warehouse: Warehouse) -> None:
    (note,) = warehouse.land("prometheus", {"a.prom": scrapes((0, 4), {"md0": from_to("polishing", 1, 3)})}).files[0].notes
    assert "`polishing`" in note and "web1/md0" in note and events(warehouse) == []


def test_a_pull_reads_the_same_in_one_call_or_several(warehouse: Warehouse) -> None:
    """Two arrays, one of which resyncs from 10:35 to 12:10. The minutes are steps of the pull."""
    series = counted_drives(UNIX - 600, UNIX + 4 * 3600)
    times = [UNIX + 60 * minute for minute in range(-10, 241)]
    for md in ("md0", "md1"):
        for state in ("active", *WORK):
            resyncs = [md == "md0" and UNIX + 35 * 60 <= time < UNIX + 130 * 60 for time in times]
            values = [float((state == "resync") == does if state in ("active", "resync") else 0) for does in resyncs]
            series[labels("node_md_state", instance="web:9100", job="node", device=md, state=state)] = list(zip(times, values, strict=True))
    for device, md in (("sda", "md0"), ("sdb", "md0"), ("sdc", "md1")):
        key = labels("drivetail_md_member", instance="web:9100", job="node", device=device, md=md, uuid=UUIDS[md], role="data")
        series[key] = [(time, 1.0) for time in times]
    with serving(Server(series)) as server:
        for first, end in ((2, 4), (0, 1), (1, 2)):
            assert ingest("prometheus", server.url, warehouse.path, first=at(first), end=at(end)).notes == []
    query = "select drive_id, event_type, occurred_at, ended_at, raid_group_id, detail from marts.fct_drive_events order by all"
    minutes = (START + timedelta(minutes=35), START + timedelta(minutes=130))
    assert warehouse.built(query) == [(f"S{n}", "scrub", *minutes, UUIDS["md0"], "md: resync") for n in (0, 1)]
    assert not list(warehouse.path.glob("pulled/**/*.*"))
