"""Several series of a device: parts of it, the same twice, or other machines of one name; and who bore a name from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import permutations

import pytest

from ingest import ingest
from ingest.contract.findings import Inventory
from ingest.sources.prometheus.doctor import _Doctor
from ingest.sources.prometheus.paths import telling
from ingest.sources.prometheus.pull import Selection
from tests.ingest.conftest import Warehouse, counts

HOUR = datetime(2026, 3, 2, 8)
T = 1_772_438_400  # the same
METRICS = ("reads_completed", "writes_completed", "read_time_seconds", "write_time_seconds", "read_bytes", "written_bytes")
SPANS = "drive_id from_utc to_utc read_ios coverage"


def scrape(minute: float, reads: float, device: str = "sda", info: str = "", us: int = 2000, **labels: str) -> str:
    """The counters of a device at a minute after 8:00, and node_disk_info with the labels `info`."""
    given = {"device": device, "instance": "n1:9100"} | labels
    shown = ",".join(f'{name}="{value}"' for name, value in given.items() if value)
    at = f"{T + minute * 60:.3f}"
    values = (reads, reads // 2, reads * us / 1e6, reads / 2e3, reads * 4096, reads * 2048)
    lines = "".join(f"node_disk_{name}_total{{{shown}}} {value} {at}\n" for name, value in zip(METRICS, values, strict=True))
    return lines + (f"node_disk_info{{{shown},{info}}} 1 {at}\n" if info else "")


def minute(number: float) -> datetime:
    return HOUR + timedelta(minutes=number)


def land(warehouse: Warehouse, *texts: str) -> list[str]:
    """The notes on a file of these scrapes."""
    (file,) = warehouse.land("prometheus", {"n/a.prom": "".join(texts)}).files
    return file.notes


@pytest.mark.parametrize(
    ("label", "values"), [("pod", "ab"), ("job", "ab"), ("prometheus_replica", "ab"), ("instance", ("n1:9100", "n1:9200"))]
)
def test_paths_that_follow_each_other_are_parts_of_the_hour(label: str, values: Sequence[str], warehouse: Warehouse) -> None:
    before = [scrape(n, 100 + 10 * n, **{label: values[0]}) for n in range(0, 25, 4)]
    assert land(warehouse, *before, *(scrape(n, 100 + 10 * n, **{label: values[1]}) for n in range(28, 61, 4))) == []
    assert warehouse.rows("drive_hours", SPANS) == [
        ("n1/sda", None, minute(24), 240, pytest.approx(0.4)), ("n1/sda", minute(28), None, 320, pytest.approx(32 / 60)),
    ]  # fmt: skip
    assert warehouse.rows("drive_aliases", "alias") == []


def test_a_pod_that_is_replaced_by_a_boot_cuts(warehouse: Warehouse) -> None:
    land(warehouse, *(scrape(n, 900 + n, pod="a") for n in range(30)), *(scrape(n, n, pod="b") for n in range(30, 61)))
    cut = [("n1/sda", None, minute(29) + timedelta(microseconds=2), minute(30))]
    assert warehouse.rows("drive_aliases", "alias drive_id valid_from valid_to") == cut


@pytest.mark.parametrize(("first", "again"), [(0, 40), (20, 60)])
def test_two_watchers_count_once_and_one_counts(first: int, again: int, warehouse: Warehouse) -> None:
    """One sees all of the hour but its first or last 20 minutes, the other 30 of those that it saw and these 20."""
    longer = range(20 - first, 61 - first)
    shorter = range(41) if first == 0 else range(20, 61)
    text = [scrape(n, 5000 + 30 * n, replica="long") for n in longer] + [scrape(n, 5000 + 30 * n, replica="short") for n in shorter]
    summary = warehouse.land("prometheus", {"n/a.prom": "".join(text)})
    assert sum(row[3] for row in warehouse.rows("drive_hours", SPANS)) == 1800
    assert sum(row[4] for row in warehouse.rows("drive_hours", SPANS)) == pytest.approx(1.0)
    assert len(warehouse.rows("drive_hours", SPANS)) == 2
    assert counts(summary) == (82, 62, 0, 0, 20)


def test_two_servers_a_moment_apart_agree_however_uneven_the_load(warehouse: Warehouse) -> None:
    uneven = [0, 0, 0, 90_000, 90_001, 400_000, 400_000, 400_000]
    text = [scrape(8 * n + late, 7 + uneven[n], server=name) for n in range(8) for name, late in (("a", 0), ("b", 0.2))]
    assert land(warehouse, *text) == []
    assert {row[0] for row in warehouse.rows("drive_hours", SPANS)} == {"n1/sda"}


CLUSTERS = {"eu": 50, "us": 100}


@pytest.mark.parametrize(
    ("apart", "name"),
    [
        (({"site": "ams", "job": "node"}, {"site": "nyc", "job": "node"}), "{site}"),
        (({"team": "blue"}, {"team": "red"}), "{team}"),
        (({"job": "k1"}, {"job": "k2"}), "{job}"),
        (({"job": "k/1"}, {"job": "k/2"}), "{job}"),
        (({"pod": "x7", "container": "a"}, {"pod": "y2", "container": "a"}), "{pod}"),
        (({"region": "r1"}, {"region": ""}), "{region}"),
    ],
)
def test_a_label_parts_machines_of_one_name(apart: tuple[dict[str, str], dict[str, str]], name: str, warehouse: Warehouse) -> None:
    text = [scrape(n, 1000 + per * n, device, **labels) for n in range(0, 61, 5) for per, labels in zip((20, 40), apart, strict=True)
            for device in ("sda", "sdb")]  # fmt: skip
    (note,) = land(warehouse, *text)
    hosts = [f"n1@{value.replace('/', '-')}" if (value := name.format(**labels)) else "n1" for labels in apart]
    assert f"the label {name.strip('{}')} tells them apart" in note and f"of {', '.join(sorted(hosts))}" in note
    found = {(row[0], row[3]) for row in warehouse.rows("drive_hours", SPANS)}
    assert found == {(f"{host}/{device}", ios) for host, ios in zip(hosts, (1200, 2400), strict=True) for device in ("sda", "sdb")}


@pytest.mark.parametrize("is_latency", [False, True])
def test_replicas_of_two_clusters_are_two_machines(is_latency: bool, warehouse: Warehouse) -> None:
    """The I/Os differ, or only the time that they take; each cluster is watched twice."""
    text = [
        scrape(n, 100 + (30 if is_latency else 30 * number) * n, us=9000 * number if is_latency else 2000, cluster=cluster, replica=replica)
        for n in range(0, 61, 5) for number, cluster in enumerate(("c1", "c2"), 1) for replica in "ab"
    ]  # fmt: skip
    assert len(land(warehouse, *text)) == 1
    ios = (1800, 1800) if is_latency else (1800, 3600)
    assert [row[::3] for row in warehouse.rows("drive_hours", SPANS)] == [("n1@c1/sda", ios[0]), ("n1@c2/sda", ios[1])]


def test_idle_drives_of_other_serials_are_of_other_machines(warehouse: Warehouse) -> None:
    text = [scrape(n, 9, info=f'serial="{serial}"', dc=dc) for n in range(0, 61, 5) for serial, dc in (("A1", "x"), ("B1", "y"))]
    (note,) = land(warehouse, *text)
    assert "serials A1 and B1" in note
    assert warehouse.rows("drive_aliases", "alias drive_id") == [("n1@x/sda", "A1"), ("n1@y/sda", "B1")]


def test_replicas_that_saw_two_drives_in_turn_are_one_host(warehouse: Warehouse) -> None:
    """A call may have no more of two replicas than the last reading before a swap, and the first after it."""
    text = [
        scrape(n, 10 * n, info=f'serial="{serial}"', replica=replica)
        for n, serial, replica in ((3, "A1", "b"), (4, "A1", "a"), (55, "B1", "b"), (56, "B1", "a"))
    ]
    assert land(warehouse, *text) == []
    assert {row[0] for row in warehouse.rows("drive_aliases", "alias")} == {"n1/sda"}


def test_a_host_keeps_its_name_in_a_call_that_contradicts_nothing(warehouse: Warehouse) -> None:
    busy = [scrape(n, 1000 + per * n, cluster=name) for n in range(0, 61, 5) for name, per in CLUSTERS.items()]
    idle = [scrape(n, 9000, cluster=name) for n in range(60, 121, 5) for name in CLUSTERS]
    assert len(land(warehouse, *busy)) == 1
    assert land(warehouse, *idle) == []
    assert {row[0] for row in warehouse.rows("drive_hours", SPANS)} == {"n1@eu/sda", "n1@us/sda"}


def test_a_machine_with_a_port_in_its_name_keeps_it_when_alone(warehouse: Warehouse) -> None:
    both = [scrape(n, 1000 + port % 100 * n, instance=f"localhost:{port}") for n in range(0, 61, 5) for port in (9101, 9102)]
    assert land(warehouse, *both) == land(warehouse, *(scrape(n, 9000 + n, instance="localhost:9102") for n in range(60, 121, 5))) == []
    assert [row[0] for row in warehouse.rows("drive_hours", SPANS)] == ["localhost:9101/sda", *["localhost:9102/sda"] * 2]


def test_several_labels_part_three_machines() -> None:
    labels = [{"rack": "1", "pod": "p"}, {"rack": "1", "pod": "q"}, {"rack": "2", "pod": "q"}]
    pairs = [(labels[one], labels[other]) for one, other in ((0, 1), (0, 2), (1, 2))]
    assert telling(pairs) == ("rack", "pod") and telling(pairs[1:2]) == ("rack",)


def test_names_that_swap_are_passed_on_at_the_instant(warehouse: Warehouse) -> None:
    text = [
        scrape(n, 10 * n if n < 31 else 10 * (n - 31), device, info=f'serial="{serial}",wwn="0x5000c500b1{serial.lower()}0000"')
        for n in range(0, 61, 3) for device, serial in zip(("sda", "sdb"), ("AA", "BB") if n < 31 else ("BB", "AA"), strict=True)
    ]  # fmt: skip
    assert land(warehouse, *text) == []
    periods = [("n1/sda", "AA", HOUR, minute(30)), ("n1/sda", "BB", minute(33), None)]
    periods += [("n1/sdb", "AA", minute(33), None), ("n1/sdb", "BB", HOUR, minute(30))]
    assert sorted(row for row in warehouse.rows("drive_aliases", "alias drive_id valid_from valid_to") if row[0][:3] == "n1/") == periods
    assert sorted(warehouse.rows("drives", "drive_id valid_from valid_to")) == sorted((row[0], *row[2:]) for row in periods)
    spans = warehouse.rows("drive_hours", SPANS)
    assert [row[:4] for row in spans] == [
        (f"n1/{device}", *span) for device in ("sda", "sdb") for span in ((None, minute(30), 300), (minute(33), None, 270))
    ]


def test_a_drive_that_was_seen_once_is_no_drive_of_an_hour(warehouse: Warehouse) -> None:
    serials = ["P1", "P1", "P2", "P3", "P3"]
    land(warehouse, *(scrape(15 * n, 10 * n, info=f'serial="{serial}"') for n, serial in enumerate(serials)))
    assert sorted(warehouse.rows("drives", "valid_from valid_to")) == [(HOUR, minute(15)), (minute(45), None)]
    assert {row[0] for row in warehouse.rows("drive_aliases", "drive_id")} == {"P1", "P3"}


def test_both_ends_of_a_gap_are_cuts_and_nothing_is_lost(warehouse: Warehouse) -> None:
    land(warehouse, *(scrape(n, 10 * n) for n in (*range(0, 21, 2), *range(40, 61, 2))))
    spans = [(None, minute(20), 200), (minute(20), minute(40), 200), (minute(40), None, 200)]
    assert [row[1:4] for row in warehouse.rows("drive_hours", SPANS)] == spans
    assert sorted(warehouse.rows("drive_aliases", "drive_id valid_from")) == [(None, minute(20)), (None, minute(40))]


def test_a_sample_with_a_cut_is_two(warehouse: Warehouse) -> None:
    text = "".join(scrape(n, 10 * n if n < 8 else 10 * (n - 8)) for n in range(61))
    (warehouse.path.parent / "s.prom").write_text(text)
    ingest("prometheus", warehouse.path.parent / "s.prom", warehouse.path, source_options={"resolution": "15m"})
    samples = sorted(warehouse.rows("drive_samples", "from_utc to_utc read_ios"))
    assert samples[:3] == [(HOUR, minute(7), 70), (minute(8), minute(15), 70), (minute(15), minute(30), 150)]


@pytest.mark.parametrize(
    ("wwns", "models", "said"),
    [
        (("0x5000c500c0ffee01", "0x5000c500c0ffee01"), ("M1", "M2"), "models M1 and M2"),
        (("0x5000000000000001", "0x5000000000000001"), ("M1", "M1"), "0x5000000000000001 is no true world wide name"),
        (("0x6666666666666666", "0x6666666666666666"), ("M1", "M1"), "is no true world wide name"),
        (("0x600508b1001c7a3e", "0x600508b1001c7a3e"), ("M1", "M1"), "is no true world wide name"),
        (("0x5000c500c0ffee01", "0x5000c500c0ffee02"), ("M1", "M1"), "world wide names 0x5000c500c0ffee01 and 0x5000c500c0ffee02"),
        (("", ""), ("M1", "M1"), "without a world wide name of both"),
        (("0x5000c500c0ffee01", "0x5000c500c0ffee01"), ("M1", "M1"), None),
        (("0x5000c500c0ffee01", "0x5000c500c0ffee01"), ("M1", ""), None),
    ],
)
def test_devices_of_one_serial_are_paths_by_a_true_name_and_one_model(
    wwns: tuple[str, str], models: tuple[str, str], said: str | None, warehouse: Warehouse
) -> None:
    infos = [f'serial="DOCK7",wwn="{wwn}",model="{model}"' for wwn, model in zip(wwns, models, strict=True)]
    notes = land(warehouse, *(scrape(n, n, f"sd{'ab'[k]}", infos[k]) for n in range(0, 61, 5) for k in (0, 1)))
    assert notes == [] if said is None else "DOCK7 (n1/sda and n1/sdb: " in notes[0] and said in notes[0]
    is_wide = any(row[0].startswith("wwn:") for row in warehouse.rows("drive_aliases", "alias"))
    assert is_wide == (said is None or said.startswith("world wide names"))


@pytest.mark.parametrize("wwn", ["0x5000000000000001", "0x5000c500c0ffee01"])
@pytest.mark.parametrize(("devices", "named"), [("ab", ["n1/sda", "n1/sdb"]), ("a", [])])
def test_models_see_a_placeholder_of_several_devices_which_names_none(
    devices: str, named: list[str], wwn: str, warehouse: Warehouse
) -> None:
    info = f'serial="0000000000",wwn="{wwn}",model="M1"'
    notes = land(warehouse, *(scrape(n, n, f"sd{letter}", info) for n in range(0, 61, 5) for letter in devices))
    assert len(notes) == 1 and "0000000000" in notes[0]
    assert sorted(warehouse.rows("drive_aliases", "alias drive_id")) == [(alias, "0000000000") for alias in named]


@pytest.mark.parametrize("order", [*permutations(((0, "U1"), (65, "U1"), (300, "U2")))])
def test_a_drive_changed_between_calls_stays_until_its_last_hour(order: Sequence[tuple[int, str]], warehouse: Warehouse) -> None:
    for first, serial in order:
        land(warehouse, *(scrape(first + n, n + first, info=f'serial="{serial}"') for n in range(0, 61, 5)))
    # where a later call landed first, it says what an earlier one has said, or that the drive was there until that one ended
    repeated = {("U1", minute(60), None), ("U1", minute(65), None)}
    seen = set(warehouse.rows("drive_aliases", "drive_id valid_from valid_to")) - repeated
    assert seen == {("U1", HOUR, None), ("U1", minute(125), None), ("U2", minute(300), None)}


def test_a_serial_of_two_machines_is_seen_on_both_at_once_and_said_once(warehouse: Warehouse) -> None:
    for first in (0, 60):
        scrapes = (
            scrape(first + n + late, n, info='serial="QEMU7"', instance=host) for n in range(0, 61, 5) for host, late in MACHINES.items()
        )
        assert "of two hosts" in land(warehouse, *scrapes)[0]
    claims = sorted(warehouse.rows("drive_aliases", "alias valid_from valid_to"))
    assert claims == [("a/sda", HOUR, minute(60)), ("b/sda", minute(0.5), minute(60.5))]
    assert sorted(warehouse.rows("drives", "drive_id valid_to")) == [("a/sda", None), ("b/sda", None)]


@pytest.mark.parametrize(
    ("wwn", "said"), [("0x5000c500a1b2c3d4", "are one drive where"), ("0x5000000000000001", "of two hosts)"), ("", "of two")]
)
def test_a_serial_of_two_hosts_may_be_one_drive_that_the_build_finds(wwn: str, said: str, warehouse: Warehouse) -> None:
    info = f'serial="QEMU8",wwn="{wwn}"'
    notes = land(warehouse, *(scrape(n + late, n, info=info, instance=host) for n in range(0, 61, 5) for host, late in MACHINES.items()))
    assert said in notes[0] and (wwn != "" or "one drive" not in notes[0])


@pytest.mark.parametrize("later", [("b",), ("a", "b")])
def test_a_further_host_states_the_world_wide_name_with_the_serial(later: tuple[str, ...], warehouse: Warehouse) -> None:
    """Whether the hosts before it are still there, and so share the serial, or are not."""
    info = 'serial="V1",wwn="0x5000c5f100000001"'
    for first, hosts in ((0, ("a",)), (65, later), (130, ("c", "d"))):
        land(warehouse, *(scrape(first + n, n, info=info, instance=f"{host}:9100") for n in range(0, 61, 5) for host in hosts))
        first_said = dict(sorted(warehouse.rows("drive_aliases", "alias valid_from"), reverse=True))
        wide = [at for alias, at in warehouse.rows("drive_aliases", "alias valid_from") if alias.startswith("wwn:")]
        assert {at for alias, at in first_said.items() if "/" in alias} <= set(wide)


MACHINES = {"a:9100": 0, "b:9100": 0.5}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_pieces_in_any_order_and_twice_come_to_the_same_hours(order: tuple[int, int], warehouse: Warehouse) -> None:
    pieces = [[scrape(n, 7 * n, info='serial="V1"') for n in range(at, at + 61, 5)] for at in (0, 60)]
    for piece in (*order, *order):
        land(warehouse, *pieces[piece])
    rows = [(row[1], row[2], row[3]) for row in warehouse.rows("drive_hours", SPANS)]
    assert rows == [(None, None, 420), (None, None, 420)]
    assert {row[0] for row in warehouse.rows("drive_aliases", "drive_id")} == {"V1"}


def test_names_from_before_node_exporter_0_16_are_read(warehouse: Warehouse) -> None:
    old = ("reads_completed", "writes_completed", "read_time_ms", "write_time_ms", "bytes_read", "bytes_written")
    text = "".join(
        f'node_disk_{name}{{device="sda",instance="old:9100"}} {value} {T + at}\n'
        for at, values in ((0, (1, 2, 3, 4, 5, 6)), (3600, (101, 52, 303, 54, 405, 506)))
        for name, value in zip(old, values, strict=True)
    )
    land(warehouse, text)
    columns = "read_ios write_ios read_latency_us write_latency_us read_blocks write_blocks"
    assert warehouse.rows("drive_hours", columns) == [(100, 50, 3000.0, 1000.0, 400, 500)]


def test_partitions_are_drives_where_xen_gives_no_disk(warehouse: Warehouse) -> None:
    names = ("xvda1", "xvda2", "xvdb", "xvdb1", "sdc1")
    (note,) = land(warehouse, *(scrape(n, n, device) for n in (0, 30, 60) for device in names))
    assert {row[0] for row in warehouse.rows("drive_hours", "drive_id")} == {"n1/xvda1", "n1/xvda2", "n1/xvdb"}
    assert note == "left out 2 devices that are no whole drive: sdc1, xvdb1"


def test_doctor_names_the_label_that_parts_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _Doctor(None, Selection(), HOUR + timedelta(hours=1), Inventory())  # type: ignore[arg-type]

    def vector(query: str, at: int | None = None) -> list[tuple[dict[str, str], float]]:
        hours = 1 if at in (None, T + 3600) else 0
        return [
            ({"__name__": f"node_disk_{metric}_total", "instance": "n1:9100", "device": "sda", "cluster": name}, 500.0 + 60 * per * hours)
            for metric in METRICS for name, per in CLUSTERS.items()
        ]  # fmt: skip

    monkeypatch.setattr(asked, "vector", vector)
    asked.drives = [{"instance": "n1:9100", "device": "sda"}] * 2
    (finding,) = asked.apart()
    assert finding.check == "apart" and "the label cluster tells them apart" in finding.said and "n1@eu, n1@us" in finding.said
