"""One fleet in the words of every collector: the same drive-hours, or a refusal that names the collector and says why."""

from __future__ import annotations

import itertools
import json
import re
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from drivetail.host.doctor import examine
from engine.warehouse import Warehouse as Built
from ingest import ingest
from ingest.contract.findings import MISSING, OK, WEAK, Finding
from ingest.sources.prometheus.client import Client, Series
from ingest.sources.prometheus.dialects import COLUMNS, DIALECTS, PER_SECOND, TODAY, UNREAD, Dialect, way_of
from ingest.sources.prometheus.pull import Selection, pull
from tests.ingest.conftest import Warehouse
from tests.ingest.prometheus_server import Server, serving
from tests.proof.prometheus_fleet import prometheus

T = 1_767_607_200  # 2026-01-05 10:00 UTC
START = datetime(2026, 1, 5, 10)
HOURS = 3
BY_TITLE = {one.title: one for one in DIALECTS}
# those that count; the others give rates
COUNTING = [one for one in DIALECTS if not one.block_bytes]
TELEGRAF, OTEL = BY_TITLE["Telegraf (diskio)"], BY_TITLE["OpenTelemetry (hostmetrics)"]
# a scrape by each collector, written by hand in its form
_PARTS = re.split(r"^### (.+)\n", (Path(__file__).parent / "collectors.prom").read_text(), flags=re.MULTILINE)[1:]
RECORDED = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))
COUNTED = "read_ios write_ios read_latency_us write_latency_us read_blocks write_blocks coverage"

Labels = tuple[tuple[str, str], ...]
Fleet = dict[Labels, list[tuple[float, float]]]


def scrapes(text: str) -> str:
    """The scrape at 10:00, and at 11:00 with all counters twice as high."""
    samples = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return "".join(f"{series} {float(value) * n} {T + 3600 * (n - 1)}\n" for n in (1, 2) for series, _, value in samples)


def test_the_collector_of_the_docs_hands_its_counters_on() -> None:
    text = (Path(__file__).parents[2] / "docs/sources/prometheus.md").read_text()
    (block,) = re.findall(r"^```yaml\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    config = yaml.safe_load(block)
    (pipeline,) = config["service"]["pipelines"].values()
    assert all(name in config[part] for part, names in pipeline.items() for name in names)
    assert set(config["receivers"]["hostmetrics"]["scrapers"]) == {"disk"}
    assert config["exporters"]["prometheus"]["resource_to_telemetry_conversion"]["enabled"] is True


def test_every_collector_has_a_recorded_scrape() -> None:
    assert set(RECORDED) == {*BY_TITLE, *(one.collector for one in UNREAD), "collectd 6"}


@pytest.mark.parametrize("title", [*(one.title for one in COUNTING), "collectd 6"])
def test_a_recorded_scrape_is_read(title: str, warehouse: Warehouse) -> None:
    warehouse.land("prometheus", {"a.prom": scrapes(RECORDED[title])})
    assert warehouse.rows("drive_hours", COUNTED) == [(1000, 500, 4000.0, 1000.0, 4096000, 2048000, 1.0)]
    device = {"windows_exporter": "PhysicalDrive0", "eseries_exporter": "tray0-12"}.get(title.partition(" ")[0], "sda")
    assert warehouse.rows("drives", "drive_id host") == [(f"h1/{device}", "h1")]


def rated(minutes: int, per_scrape: int = 60, **changed: str | None) -> str:
    """Harvest's scrape from 10:00 on, with rates that are three times as high in the second half hour; changed: values, null = left out."""
    samples = [line.rpartition(" ") for line in RECORDED["Harvest (single disks of ONTAP)"].splitlines() if not line.startswith("#")]
    lines = []
    for at in range(T, T + minutes * 60 + 1, per_scrape):
        for series, _, value in samples:
            metric = series.partition("{")[0]
            times = 1 if "latency" in metric or at <= T + 1800 else 3
            if (text := changed.get(metric, str(float(value) * times))) is not None:
                lines.append(f"{series} {text} {at}\n")
    return "".join(lines)


HARVEST_PLACE = ("c1/1.0.12-1.0.12P1", "c1", "1.0", "12", "c1/aggr1/plex0/rg0")


@pytest.mark.parametrize("per_scrape", [60, 300])
def test_harvests_rates_count_since_the_scrape_before(per_scrape: int, warehouse: Warehouse) -> None:
    warehouse.land("prometheus", {"a.prom": rated(60, per_scrape)})
    # 2 blocks a read of 2000 us each, 4 a write of 250 us; 10 reads a second, then 30
    ios = (10 * 1800 + 30 * 1800, 5 * 1800 + 15 * 1800)
    assert warehouse.rows("drive_hours", COUNTED) == [(*ios, 4000.0, 1000.0, ios[0] * 2 * 4096, ios[1] * 4 * 4096, 1.0)]
    assert warehouse.rows("drives", "drive_id host enclosure slot raid_group_id") == [HARVEST_PLACE]


def test_a_rate_says_nothing_of_more_than_five_minutes(warehouse: Warehouse) -> None:
    text = "".join(line for line in rated(60).splitlines(keepends=True) if not T + 600 < int(line.split()[-1]) <= T + 1200)
    warehouse.land("prometheus", {"a.prom": text})
    assert [row[0] for row in warehouse.rows("drive_hours", "coverage")] == [10 / 60, 39 / 60]


def test_a_drive_of_harvest_without_io_has_no_mean(warehouse: Warehouse) -> None:
    text = rated(60, disk_user_writes="0", disk_user_write_latency=None, disk_user_write_blocks="0")
    assert warehouse.land("prometheus", {"a.prom": text}).rows_rejected == 0
    assert warehouse.rows("drive_hours", "write_ios write_latency_us") == [(0, None)]


def test_a_drive_of_harvest_that_is_not_divided_has_its_own_name(warehouse: Warehouse) -> None:
    warehouse.land("prometheus", {"a.prom": rated(60).replace("1.0.12P1", "1.0.12").replace('raid="rg0"', 'raid=""')})
    drives = warehouse.rows("drives", "drive_id enclosure slot raid_group_id is_group_guessed")
    assert drives == [("c1/1.0.12", "1.0", "12", "c1", True)]  # a spare is in no group


@pytest.mark.parametrize("lacks", ["disk_user_read_blocks", "disk_user_read_latency"])
def test_a_mean_of_blocks_is_none_without_their_number(lacks: str, warehouse: Warehouse) -> None:
    summary = warehouse.land("prometheus", {"a.prom": rated(60, **{lacks: None})})
    assert summary.rows_accepted == 0 and summary.rows_rejected == 61
    assert any(note.startswith("counters of Harvest, without read_") for note in summary.files[0].notes)


def test_a_server_is_asked_for_every_scrape_of_rates(tmp_path: Path) -> None:
    series: Fleet = {}
    for line in rated(120).splitlines():
        name, value, at = line.rsplit(" ", 2)
        labels = dict(re.findall(r'(\w+)="([^"]*)"', name)) | {"__name__": name.partition("{")[0]}
        series.setdefault(tuple(sorted(labels.items())), []).append((int(at), float(value)))
    server, _ = landed(tmp_path, "server", series)
    file = Warehouse(tmp_path / "file")
    file.land("prometheus", {"a.prom": rated(120)})
    assert rows_of(server) == rows_of(file) and len(rows_of(file)) == 2
    assert server.rows("drives", "drive_id host enclosure slot raid_group_id") == [HARVEST_PLACE]


def test_an_array_of_eseries_names_tray_and_slot(warehouse: Warehouse) -> None:
    text = scrapes(RECORDED["eseries_exporter (drive-statistics of an array)"])
    unplaced = text.replace('tray="0"', 'tray=""').replace('slot="12"', 'slot="0100000050"')  # what the exporter's inventory lacks
    summary = warehouse.land("prometheus", {"a.prom": text, "b.prom": unplaced})
    assert warehouse.rows("drives", "drive_id host enclosure slot is_group_guessed") == [("h1/tray0-12", "h1", "tray0", "12", True)]
    assert "left out 1 devices that are no whole drive: -0100000050" in [note for file in summary.files for note in file.notes]


@pytest.mark.parametrize("unread", UNREAD, ids=lambda one: one.collector)
def test_an_unread_collector_is_named_with_its_reason(unread: Any, warehouse: Warehouse) -> None:
    (file,) = warehouse.land("prometheus", {"a.prom": RECORDED[unread.collector]}).files
    assert file.status == "unreadable" and f"{unread.collector} (" in (file.note or "") and unread.why in (file.note or "")


def test_a_collector_that_counts_no_time_is_named(warehouse: Warehouse) -> None:
    (file,) = warehouse.land(
        "prometheus", {"a.prom": 'system_disk_io_time_seconds_total{device="sda",host_name="h1"} 3 1767600000\n'}
    ).files
    assert "OpenTelemetry (hostmetrics) (system_disk_io_time_seconds_total): a latency needs I/Os and the time they took" in (
        file.note or ""
    )


def test_serial_and_name_of_telegraf_are_known(warehouse: Warehouse) -> None:
    warehouse.land("prometheus", {"a.prom": scrapes(RECORDED["Telegraf (diskio)"])})
    aliases = warehouse.rows("drive_aliases", "alias drive_id")
    assert sorted(aliases) == [("h1/sda", "ZC1A7K2Q"), ("wwn:0x5000c500a1b2c3d4", "ZC1A7K2Q")]


# The same counters in every dialect ------------------------------------------------------------------------------


def counted() -> list[list[tuple[int, dict[str, float]]]]:
    """Counters of three drives every 5 minutes: (unix seconds, by column). The third is slow; the second is reset at 11:20 (a boot)."""
    drives = []
    for number in range(3):
        at_reset, readings = 16 if number == 1 else 0, []
        for n in range(12 * HOURS + 1):
            n_since = n - at_reset if n >= at_reset else n
            reads, writes = 600 * n_since + 7 * n_since * (number + 1), 90 * n_since
            spent = (reads * (32 if number == 2 else 8) / 1000, writes / 500)
            values = (reads, writes, *spent, reads * 4096, writes * 8192)
            readings.append((T + 300 * n, dict(zip(COLUMNS, values, strict=True))))
        drives.append(readings)
    return drives


def written(dialect: Dialect, host: str = "h1", is_described: bool = False) -> Fleet:
    """The series of `counted` as a collector names them; is_described: node_exporter knows serial numbers and the array."""
    series: Fleet = {}
    for number, readings in enumerate(counted()):
        place = dict(zip(dialect.device, ("0", str(number)) if len(dialect.device) > 1 else (str(number),), strict=True))
        if not dialect.drives:
            place = {dialect.device[0]: f"sd{'abc'[number]}"}
        place |= {"instance": "gateway:8889"} | {dialect.host[0]: host} | ({dialect.serial: f"S{number}"} if dialect.serial else {})
        for column in COLUMNS:
            metric = getattr(dialect, column).replace("(micro)?", "").replace("(", "").replace(")?", "")
            way = {dialect.direction: way_of(column)} if dialect.direction else {}
            per = PER_SECOND[dialect.time] if column.endswith("seconds") else 1
            key = tuple(sorted({"__name__": metric, **place, **way}.items()))
            series[key] = [(at, round(values[column] * per, 6)) for at, values in readings]
        if dialect == TODAY and is_described:
            for metric, said in (("node_disk_info", {"serial": f"S{number}"}), ("drivetail_md_member", {"md": "md0", "uuid": "a:b"})):
                series[tuple(sorted({"__name__": metric, **place, **said}.items()))] = [(at, 1.0) for at, _ in readings]
    return series


def as_text(series: Fleet) -> str:
    lines = []
    for key, samples in series.items():
        labels = dict(key)
        metric = labels.pop("__name__")
        shown = ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
        lines += [f"{metric}{{{shown}}} {value!r} {at}\n" for at, value in samples]
    return "".join(lines)


def rows_of(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    found = warehouse.live().sort("drive_id", "hour_utc", "from_utc").select(*COUNTED.split(), "hour_utc", "from_utc", "to_utc")
    return found.with_columns(pl.col("read_latency_us", "write_latency_us").round(3)).rows()


def landed(folder: Path, way: str, *parts: Fleet) -> tuple[Warehouse, list[str]]:
    """The counters in a warehouse of its own, from files or a server; and notes."""
    warehouse = Warehouse(folder / way)
    if way == "file":
        files = warehouse.land("prometheus", {f"{number}.prom": as_text(part) for number, part in enumerate(parts)}).files
        return warehouse, [note for file in files for note in file.notes]
    with serving(Server({key: samples for part in parts for key, samples in part.items()})) as server:
        summary = ingest("prometheus", server.url, warehouse.path, first=START, end=START + timedelta(hours=HOURS))
    return warehouse, [note for file in summary.files for note in file.notes]


def expected() -> list[tuple[Any, ...]]:
    """Hours of `counted`, made another way: sums of the gain from reading to reading."""
    rows = []
    for number, readings in enumerate(counted()):
        for hour in range(HOURS):
            spans: list[list[tuple[int, dict[str, float]]]] = [[]]
            for (_, before), (at, after) in itertools.pairwise(readings[12 * hour : 12 * hour + 13]):
                if after["reads"] < before["reads"]:
                    spans.append([])
                else:
                    spans[-1].append((at, {column: after[column] - before[column] for column in COLUMNS}))
            for span in spans:
                total = {column: sum(more[column] for _, more in span) for column in COLUMNS}
                latency = [round(1e6 * total[f"{way}_seconds"] / total[ios], 3) for way, ios in (("read", "reads"), ("write", "writes"))]
                cut = [span is not spans[0], span is not spans[-1]]
                ends = [START + timedelta(seconds=at - T) for at in (span[0][0] - 300, span[-1][0])]
                bounds = [end if is_cut else None for end, is_cut in zip(ends, cut, strict=True)]
                blocks = (total["read_bytes"], total["written_bytes"])
                part = round(len(span) / 12, 6)
                rows.append((total["reads"], total["writes"], *latency, *blocks, part, START + timedelta(hours=hour), *bounds, number))
    return rows


@pytest.mark.parametrize("way", ["file", "server"])
@pytest.mark.parametrize("dialect", COUNTING, ids=lambda one: one.title)
def test_one_fleet_has_the_same_hours_in_every_dialect(dialect: Dialect, way: str, tmp_path: Path) -> None:
    warehouse, notes = landed(tmp_path, way, written(dialect))
    found = [(*row[:6], round(row[6], 6), *row[7:]) for row in rows_of(warehouse)]
    assert sorted(found, key=str) == sorted((row[:-1] for row in expected()), key=str)
    assert notes == [f"counters of {dialect.collector}"] * (way == "file" and dialect.collector != TODAY.collector)
    assert {row[0] for row in warehouse.rows("drives", "host")} == {"h1"}
    serials = {row[0] for row in warehouse.rows("drive_aliases", "drive_id")} - {None}
    assert serials == ({"S0", "S1", "S2"} if dialect.serial else set())


def test_a_value_that_is_no_number_is_no_reading(tmp_path: Path) -> None:
    broken = {key: [(at, float("nan") if at == T + 600 else value) for at, value in samples] for key, samples in written(TELEGRAF).items()}
    with serving(Server(broken)) as server:
        summary = ingest(
            "prometheus", server.url, tmp_path / "w", first=START, end=START + timedelta(hours=HOURS), source_options={"resolution": "5m"}
        )
    assert summary.rows_rejected == 3 and {record["reason"] for record in summary.rejected} == {"NaN"}
    (series,) = Selection(dialect=TELEGRAF).of_today([Series({"__name__": "diskio_read_time", "name": "sda"}, [(1.0, "x")])])
    assert series.points == [(1.0, "x")] and series.labels["__name__"] == TODAY.read_seconds


@pytest.mark.parametrize("way", ["file", "server"])
@pytest.mark.parametrize("titles", list(itertools.combinations([TODAY.title, "OpenTelemetry (hostmetrics)", "Telegraf (diskio)"], 2)))
def test_two_collectors_of_one_host_count_once(titles: tuple[str, str], way: str, tmp_path: Path) -> None:
    both, notes = landed(tmp_path / "both", way, *(written(BY_TITLE[title]) for title in titles))
    one, _ = landed(tmp_path / "one", way, written(BY_TITLE[titles[0]]))
    assert rows_of(both) == rows_of(one)
    collectors = ", ".join(sorted(title.partition(" ")[0] for title in titles))
    assert notes[-1] == f"drives are counted by several collectors, and each time counts once: h1 by {collectors}"


@pytest.mark.parametrize("way", ["file", "server"])
def test_node_exporter_names_the_drives_of_all_collectors_of_a_host(way: str, tmp_path: Path) -> None:
    warehouse, _ = landed(tmp_path, way, written(TODAY, is_described=True), written(OTEL))
    assert {row[0] for row in warehouse.rows("drive_hours", "raid_group_id")} == {"a:b"}
    alone, _ = landed(tmp_path / "alone", way, written(TODAY, is_described=True))
    assert rows_of(warehouse) == rows_of(alone)
    both, one = (sorted(each.rows("drive_aliases", "alias drive_id valid_from"), key=str) for each in (warehouse, alone))
    assert both == one


@pytest.mark.parametrize("way", ["file", "server"])
@pytest.mark.parametrize("dialect", [one for one in COUNTING if not one.drives], ids=lambda one: one.title)
def test_a_device_that_a_rule_writes_as_a_path_is_the_same(dialect: Dialect, way: str, tmp_path: Path) -> None:
    series = written(dialect, is_described=True)
    label = dialect.device[0]
    as_paths = {
        tuple((name, f"/dev/{value}" if name == label else value) for name, value in key): samples for key, samples in series.items()
    }
    plain, renamed = (landed(tmp_path / name, way, each)[0] for name, each in (("plain", series), ("paths", as_paths)))
    assert rows_of(renamed) == rows_of(plain) != []
    for kind, columns in (("drives", "drive_id raid_group_id host"), ("drive_aliases", "alias drive_id valid_from")):
        assert sorted(renamed.rows(kind, columns), key=str) == sorted(plain.rows(kind, columns), key=str)


@pytest.mark.parametrize("way", ["file", "server"])
def test_the_collector_parts_two_machines_of_one_name(way: str, tmp_path: Path) -> None:
    busier = {key: [(at, 3 * value) for at, value in samples] for key, samples in written(TELEGRAF).items()}
    warehouse, notes = landed(tmp_path, way, written(TODAY), busier)
    assert {row[0] for row in warehouse.rows("drives", "host")} == {"h1", "h1@Telegraf"}
    assert any("contradict each other; the label drivetail_collector tells them apart" in note for note in notes)


@pytest.mark.parametrize("dialect", [TELEGRAF, OTEL], ids=lambda one: one.collector)
def test_labels_that_the_user_names_are_those_of_every_collector(dialect: Dialect, tmp_path: Path) -> None:
    named = {dialect.host[0]: "node", dialect.device[0]: "disk"}
    renamed = {tuple(sorted((named.get(name, name), value) for name, value in key)): samples for key, samples in written(dialect).items()}
    expected_rows = rows_of(landed(tmp_path, "file", written(dialect))[0])
    file, server = Warehouse(tmp_path / "renamed"), Warehouse(tmp_path / "pulled")
    labels = {"host_label": "node", "device_label": "disk"}
    file.land("prometheus", {"a.prom": as_text(renamed)}, **labels)
    with serving(Server(renamed)) as there:
        ingest("prometheus", there.url, server.path, first=START, end=START + timedelta(hours=HOURS), source_options=labels)
    assert rows_of(file) == rows_of(server) == expected_rows


@pytest.mark.parametrize(("dialect", "suffix"), [(TELEGRAF, "_total"), (OTEL, "_(seconds_|bytes_)?total")])
def test_suffixes_that_an_exporter_leaves_out_do_not_matter(dialect: Dialect, suffix: str, tmp_path: Path) -> None:
    plain = written(dialect)
    renamed = {
        tuple((name, re.sub(f"{suffix}$", "", value) if name == "__name__" else value) for name, value in key): samples
        for key, samples in plain.items()
    }
    for way in ("file", "server"):
        assert rows_of(landed(tmp_path / "renamed", way, renamed)[0]) == rows_of(landed(tmp_path / "plain", way, plain)[0])


def test_one_collector_of_two_hosts_through_a_gateway_is_two_hosts(tmp_path: Path) -> None:
    warehouse, notes = landed(tmp_path, "server", written(OTEL), written(OTEL, "h2"))
    assert {row[0] for row in warehouse.rows("drives", "host")} == {"h1", "h2"} and notes == []


def test_hosts_that_one_label_does_not_name_are_named_by_the_next(tmp_path: Path) -> None:
    unnamed = {tuple(pair for pair in key if pair[0] != "host"): samples for key, samples in written(TELEGRAF).items()}
    series = unnamed | {tuple(pair for pair in key if pair[0] != "serial"): samples for key, samples in written(TELEGRAF, "h2").items()}
    for way in ("file", "server"):
        warehouse, _ = landed(tmp_path, way, series)
        assert {row[0] for row in warehouse.rows("drives", "host")} == {"gateway", "h2"}


def test_a_dialect_costs_a_server_without_it_one_question() -> None:
    with serving(Server(written(TODAY))) as server:
        pull(Client(server.url), Selection(), START, START + timedelta(hours=HOURS))
        assert sum("diskio_reads" in asked["query"] for _, asked in server.asked) == 1


# What the doctor says --------------------------------------------------------------------------------------------


def diagnosed(folder: Path, series: Fleet, pulled: Warehouse | None = None) -> dict[str, list[Finding]]:
    """Findings by check on a real server that holds these samples, the last of them now. pulled: a warehouse that takes what it has."""
    now = int(time.time()) // 300 * 300
    moved = {key: [(now - (T + 3600 * HOURS - at), value) for at, value in samples] for key, samples in series.items()}
    (folder / "a.om").write_text(as_text(moved) + "# EOF\n")
    with prometheus(folder) as url:
        (found,) = examine("prometheus", [url], {}, Built(folder / "none")).values()
        if pulled:
            ingest("prometheus", url, pulled.path)
    return {check: [one for one in found if one.check == check] for check in dict.fromkeys(one.check for one in found)}


def only(series: Fleet, *metrics: str) -> Fleet:
    return {key: samples for key, samples in series.items() if any(re.search(metric, dict(key)["__name__"]) for metric in metrics)}


@pytest.mark.parametrize("dialect", COUNTING, ids=lambda one: one.title)
@pytest.mark.needs("prometheus")
@pytest.mark.xdist_group("prometheus")
def test_the_doctor_names_the_collector_that_a_pull_reads(dialect: Dialect, tmp_path: Path, warehouse: Warehouse) -> None:
    found = diagnosed(tmp_path, written(dialect), warehouse)
    latencies = warehouse.live().group_by("drive_id").agg(pl.col("read_latency_us").mean().round(3)).sort("drive_id")
    assert latencies["read_latency_us"].to_list() == [8000.0, 8000.0, 32000.0]
    (counters,), (hosts, *_) = found["counters"], found["hosts"]
    whose = "" if dialect == TODAY else f" of {dialect.title}"
    assert (counters.state, counters.said) == (OK, f"all 6 counters{whose}, of 3 drives")
    assert (hosts.state, hosts.said) == (OK, f"3 drives on 1 host, by the label {dialect.host[0]!r}")
    assert found["peers"][0].state == OK and found["history"][0].first_hour_utc is not None
    assert (found["serials"][0].state == OK) == bool(dialect.serial)


@pytest.mark.needs("prometheus")
@pytest.mark.xdist_group("prometheus")
def test_the_doctor_counts_the_drives_of_two_collectors_once(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, written(TODAY) | only(written(OTEL), "operations", "_io_bytes") | written(TELEGRAF))
    assert [one.state for one in found["counters"]] == [OK, WEAK, OK]
    lacks = found["counters"][1].said
    assert lacks.count("system_disk_operation_time") == 2 and "of OpenTelemetry (hostmetrics); a latency needs" in lacks
    assert found["hosts"][0].said.startswith("3 drives on 1 host") and found["hosts"][1].said.startswith(
        "3 drives are watched more than once"
    )


@pytest.mark.parametrize(
    ("metric", "label", "said"),
    [
        ("collectd_disk_disk_time_read_total", "disk", "its disk_time grows each second by the mean time of an operation"),
        ("netdata_disk_ops_operations_persec_average", "family", "these are averages"),
        ("aggr_disk_user_read_latency", "aggr", "these are means over the drives of a node or aggregate; for single drives"),
        ("system_disk_io_time_seconds_total", "device", "OpenTelemetry (hostmetrics) (system_disk_io_time_seconds_total): a latency"),
        ("go_goroutines", "x", "nor what node_exporter, OpenTelemetry, Telegraf, windows_exporter, eseries_exporter, Harvest call it"),
    ],
)
@pytest.mark.needs("prometheus")
@pytest.mark.xdist_group("prometheus")
def test_the_doctor_says_why_a_collector_is_not_read(metric: str, label: str, said: str, tmp_path: Path) -> None:
    series: Fleet = {tuple(sorted({"__name__": metric, label: "sda"}.items())): [(T + 300 * n, float(n)) for n in range(37)]}
    (missing,) = diagnosed(tmp_path, series)["counters"]
    assert missing.state == MISSING and said in missing.said
