"""Pulls from a server: what they come to is what every single scrape comes to, and a bad server costs nothing but patience."""

from __future__ import annotations

import gzip
import json
import math
import random
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from ingest import IngestError, IngestSummary, ingest
from ingest.sources.prometheus import client as client_module
from ingest.sources.prometheus.client import Client, PrometheusError, TooMuch
from ingest.sources.prometheus.pull import Selection, pull
from ingest.sources.prometheus.readings import COUNTERS, READING, roll_up
from tests.fuzz import fuzz
from tests.ingest.conftest import Warehouse
from tests.ingest.prometheus_server import Fault, Samples, Server, counted_drives, labels, serving
from tests.mutate import mutated_json

START = datetime(2026, 1, 5, 10)
UNIX = 1_767_607_200
HOURS = 3
TICK = 2**-10  # seconds that sums of doubles hold exactly
HEADERS = {"Content-Type": "application/json"}

Series = dict[tuple[tuple[str, str], ...], Samples]


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "RETRIES", 2)
    monkeypatch.setattr(client_module, "BACKOFF_SECONDS", 0.0)
    for name in (client_module.USER, client_module.PASSWORD, client_module.TOKEN, client_module.TENANT):
        monkeypatch.delenv(name, raising=False)


def drive(host: str, device: str, scrapes: list[float], draw: random.Random, serial: str | None = None, **more: str) -> Series:
    """The series of a drive that works at random, scraped at these instants (unix seconds)."""
    counters = [draw.randrange(10**6) for _ in COUNTERS]
    series: Series = {labels(metric, instance=f"{host}:9100", device=device, **more): [] for metric in COUNTERS}
    for at in scrapes:
        counters = [value + draw.randrange(1000) for value in counters]
        for (key, samples), value in zip(series.items(), counters, strict=True):
            samples.append((at, value * TICK if "seconds" in dict(key)["__name__"] else value))
    if serial is not None:
        info = labels("node_disk_info", instance=f"{host}:9100", device=device, serial=serial, model="A_DISK", rotational="1", **more)
        series[info] = [(at, 1.0) for at in scrapes]
    return series


def every(seconds: float, offset: float = 0.0, hours: float = HOURS, before: float = 600.0) -> list[float]:
    return [UNIX - before + offset + n * seconds for n in range(int((hours * 3600 + before) / seconds) + 1)]


def all_readings(series: Series) -> pl.DataFrame:
    """Every scrape of every drive as a reading: what a pull would be if it read them all."""
    rows: dict[tuple[str, str, str, float], dict[str, object]] = {}
    serials = {}
    for key, samples in series.items():
        given = dict(key)
        metric, device = given.pop("__name__"), given.pop("device")
        host = given["instance"].removesuffix(":9100")
        for at, value in samples:
            if metric == "node_disk_info":
                serials[host, device, at] = given["serial"]
                continue
            path = json.dumps(dict(sorted(given.items())))
            rows.setdefault((host, device, path, at), {})[COUNTERS[metric]] = value
    made = [
        {"host": host, "device": device, "path": path, "at": at, "serial": serials.get((host, device, at)), **counters}
        for (host, device, path, at), counters in rows.items()
    ]
    frame = pl.DataFrame(made, schema={**{name: READING[name] for name in made[0]}, "at": pl.Float64()})
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in READING.items() if name not in frame.columns]
    micros = (pl.col("at") * 1e6).round().cast(pl.Int64).cast(pl.Datetime("us")).alias("at")
    return frame.with_columns(micros, *missing).select(*READING)


def drive_hours(readings: pl.DataFrame) -> pl.DataFrame:
    numbered = readings.with_columns(pl.lit(1, pl.Int64()).alias("file_no"), pl.int_range(pl.len(), dtype=pl.Int64).alias("row_no"))
    carried = [pl.lit(False).alias("is_carried"), pl.lit(None, pl.Datetime("us")).alias("since")]
    rolled = roll_up(numbered.with_columns(carried))
    asked = pl.col("hour_utc").is_between(START, START + timedelta(hours=HOURS), closed="left")
    return named(rolled.drive_hours.filter(asked), rolled.aliases).drop("file_no", "row_no").sort("hour_utc", "drive_id", "collected_at")


def named(hours: pl.DataFrame, aliases: pl.DataFrame) -> pl.DataFrame:
    """Drive-hours under the serial that their HOST/DEVICE named last at the end of their span; `seen_as` is that name.

    A serial that two of them claim for the same hour without a world wide name is none's.
    """
    aliases = aliases.filter(pl.col("drive_id").is_not_null())
    wide = aliases.filter(pl.col("alias").str.starts_with("wwn:"))["drive_id"].unique()
    shared = aliases.filter(~pl.col("drive_id").is_in(wide.implode())).group_by("drive_id", "valid_from").agg(pl.col("alias").n_unique())
    aliases = aliases.join(shared.filter(pl.col("alias") > 1), on=["drive_id", "valid_from"], how="anti")
    hours = hours.with_columns(pl.col("drive_id").alias("seen_as")).sort("collected_at")
    serials = aliases.select(
        pl.col("alias").alias("seen_as"), pl.col("drive_id").alias("serial"), pl.col("valid_from").alias("collected_at")
    )
    found = hours.join_asof(serials.sort("collected_at"), on="collected_at", by="seen_as", strategy="backward", check_sortedness=False)
    return found.with_columns(pl.coalesce("serial", "drive_id").alias("drive_id")).drop("serial")


def live_hours(warehouse: Warehouse) -> pl.DataFrame:
    return named(warehouse.live(), warehouse.live("drive_aliases")).sort("drive_id", "hour_utc")


def cut(series: Series, keep: Callable[[float], bool]) -> Series:
    return {key: [(at, value) for at, value in samples if keep(at)] for key, samples in series.items()}


def with_reset(series: Series, at: float) -> Series:
    """The counters start again at 0 at that instant."""

    def since(samples: Samples) -> Samples:
        first = next((value for t, value in samples if t >= at), 0.0)
        return [(t, value - first if t >= at else value) for t, value in samples]

    return {key: samples if dict(key)["__name__"] == "node_disk_info" else since(samples) for key, samples in series.items()}


def awkward_fleet(seed: int) -> Series:
    """A drive for every way in which an hour can be hard to measure, at random instants."""
    draw = random.Random(seed)
    fleet: Series = {}
    scrapes = every(draw.choice([40, 60, 240]), draw.random() * 15)
    for number in range(3):
        fleet |= drive("plain", f"sd{'abc'[number]}", scrapes, draw, f"P{number}")
    instants = [UNIX + draw.random() * HOURS * 3600 for _ in range(6)]
    fleet |= with_reset(drive("booted", "sda", scrapes, draw, "B0"), instants[0])
    fleet |= with_reset(with_reset(drive("twice", "sda", scrapes, draw, "B1"), instants[1]), instants[1] + 700)
    gap = sorted(instants[2:4])
    fleet |= cut(drive("silent", "sda", scrapes, draw, "G0"), lambda at: not gap[0] < at < gap[1])
    fleet |= cut(drive("late", "nvme0n1", scrapes, draw, "L0"), lambda at: at > instants[4])
    fleet |= cut(drive("gone", "nvme0n1", scrapes, draw, "L1"), lambda at: at < instants[5])
    # another drive in the same place, and the first one elsewhere
    fleet |= cut(drive("swap", "sda", scrapes, draw, "S0"), lambda at: at < instants[4])
    later = cut(drive("swap", "sda", scrapes, draw, "S1"), lambda at: at > instants[4] + 120)
    for key, samples in later.items():
        fleet[key] = fleet.get(key, []) + samples
    fleet |= drive("nameless", "vda", scrapes, draw)
    for replica in "ab":  # two Prometheus servers behind one address, a few seconds apart
        fleet |= drive("watched", "sda", every(60, ord(replica) % 7), draw, "W0", replica=replica)
    fleet |= drive("rare", "sda", every(900, 31, HOURS - 0.1, 0.0), draw, "R0")  # scraped so rarely that no hour begins with a scrape
    return fleet


def readings(series: Series) -> pl.DataFrame:
    with serving(Server(series)) as server:
        return pull(Client(server.url), Selection(), START, START + timedelta(hours=HOURS))


@pytest.mark.parametrize("seed", range(4))
def test_a_pull_comes_to_what_every_scrape_comes_to(seed: int) -> None:
    fleet = awkward_fleet(seed)
    found, whole = readings(fleet), drive_hours(all_readings(fleet))
    assert drive_hours(found).to_dicts() == whole.to_dicts()
    assert whole.height > 30 and whole.filter(pl.col("coverage") < 0.9).height > 3
    assert found.height < all_readings(fleet).height


def test_drives_that_swap_their_letters_and_swap_back_keep_their_serials() -> None:
    draw, begins, ends = random.Random(2), UNIX + 3600 + 90, UNIX + 2 * 3600 + 90
    fleet: Series = {}
    for device, first, second in (("sda", "S0", "S1"), ("sdb", "S1", "S0")):
        at_first = cut(drive("web", device, every(60), draw, first), lambda at: not begins < at < ends)
        at_second = cut(drive("web", device, every(60), draw, second), lambda at: begins < at < ends)
        for key, samples in [*at_first.items(), *at_second.items()]:
            fleet[key] = sorted(fleet.get(key, []) + samples)
    found = drive_hours(readings(fleet))
    assert found.to_dicts() == drive_hours(all_readings(fleet)).to_dicts()
    assert found["drive_id"].unique().sort().to_list() == ["S0", "S1"]
    assert found.select("drive_id", "hour_utc").n_unique() == 2 * HOURS


def test_clear_hours_cost_a_fixed_number_of_questions() -> None:
    draw = random.Random(1)
    fleet: Series = {}
    for number in range(8):
        fleet |= drive("web", f"sd{'abcdefgh'[number]}", every(15), draw, f"S{number}")
    with serving(Server(fleet)) as server:
        found = pull(Client(server.url), Selection(), START, START + timedelta(hours=HOURS))
    assert len(server.asked) == 12 and {path for path, _ in server.asked} == {"/api/v1/query_range"}
    assert found.height == 8 * (HOURS + 1)
    assert drive_hours(found)["coverage"].to_list() == [1.0] * 8 * HOURS


def a_fleet() -> Series:
    draw = random.Random(3)
    series = [drive("web", f"sd{'abc'[n]}", every(60), draw, f"S{n}") for n in range(3)]
    return {key: samples for each in series for key, samples in each.items()}


def land(server: Server, warehouse: Warehouse, hours: int = 2, first: datetime = START, **options: object) -> IngestSummary:
    return ingest("prometheus", server.url, warehouse.path, first=first, end=first + timedelta(hours=hours), source_options=options)


def pulled(series: Series, warehouse: Warehouse, **options: object) -> IngestSummary:
    with serving(Server(series)) as server:
        return land(server, warehouse, **options)  # type: ignore[arg-type]


def error(said: str, kind: str = "execution", status: int = 422) -> tuple[int, dict[str, str], bytes]:
    return status, HEADERS, json.dumps({"status": "error", "errorType": kind, "error": said}).encode()


def test_a_pull_lands_once_and_again_changes_nothing(warehouse: Warehouse) -> None:
    with serving(Server(a_fleet())) as server:
        summary = land(server, warehouse)
        assert (summary.rows_delivered, summary.rows_accepted) == (9, 9)
        rows = live_hours(warehouse)
        assert rows["seen_as"].unique().sort().to_list() == ["web/sda", "web/sdb", "web/sdc"]
        assert rows["drive_id"].to_list() == ["S0", "S0", "S1", "S1", "S2", "S2"]
        assert rows["raid_group_id"].unique().to_list() == ["web"]
        assert not list(warehouse.path.glob("pulled/*"))
        assert land(server, warehouse).delivery_seq is None
        longer = land(server, warehouse, hours=3)
    assert (longer.rows_delivered, longer.rows_accepted, longer.rows_duplicate) == (12, 6, 6)
    assert warehouse.live().height == 9
    drives = warehouse.live("drives").select("drive_id", "model", "kind", "host").unique().sort("drive_id").rows()
    assert drives == [(f"web/sd{letter}", "A DISK", "disk", "web") for letter in "abc"]


def test_an_interrupted_pull_goes_on_where_it_was(warehouse: Warehouse) -> None:
    first, second_day = datetime(2026, 1, 5, 22), "1767657600"
    fleet = drive("web", "sda", every(60, hours=16), random.Random(5), "S0")
    with serving(Server(fleet, lambda _, asked, __: error("no", "bad_data", 400) if asked["start"] == second_day else None)) as server:
        with pytest.raises(PrometheusError, match="bad_data: no"):
            land(server, warehouse, 3, first)
        assert not list(warehouse.path.glob("raw/deliveries/*"))
        server.fault = lambda *_: None
        server.asked.clear()
        summary = land(server, warehouse, 3, first)
        assert {parameters["start"] for _, parameters in server.asked} == {second_day}
    names = ["2026-01-05T22.2026-01-06T00.parquet", "2026-01-06T00.2026-01-06T01.parquet"]
    assert [file.file.rpartition("!")[2] for file in summary.files] == names
    assert warehouse.live()["hour_utc"].sort().to_list() == [first + timedelta(hours=n) for n in range(3)]


def said_of_health(**values: float) -> Series:
    """smartmon's textfile on web's sda, over all hours."""
    where = {"instance": "web:9100", "job": "node", "disk": "/dev/sda", "type": "sat"}
    scrapes = every(60, hours=40)
    told = {labels("smartmon_device_info", **where, serial_number="S0"): [(at, 1.0) for at in scrapes]}
    return told | {labels(f"smartmon_{name}", **where, smart_id="5"): [(at, value) for at in scrapes] for name, value in values.items()}


def test_a_pull_asks_for_health_once_a_day(warehouse: Warehouse) -> None:
    counters = drive("web", "sda", every(60, hours=40), random.Random(5), "S0")
    sectors = said_of_health(reallocated_sector_ct_raw_value=8, reallocated_sector_ct_value=math.nan)
    midnight = START.replace(hour=0) + timedelta(days=1)

    def asked(server: Server, hours_before: int, hours: int) -> int:
        before = len(server.asked)
        land(server, warehouse, hours, midnight - timedelta(hours=hours_before))
        return sum("smartmon" in parameters["query"] for _, parameters in server.asked[before:])

    with serving(Server(counters | sectors)) as server:
        assert asked(server, 3, 2) == 0
        assert not list(warehouse.path.glob("raw/deliveries/*/drive_health/*"))
        assert asked(server, 2, 3) == 1
        # the next hourly pull takes the last hour of the day again
        assert asked(server, 1, 3) == 1
    said = warehouse.rows("drive_health", "drive_id read_at attribute raw_value normalised_value")
    assert said == [("S0", midnight - timedelta(hours=1), "reallocated_sector_ct", 8, None)]
    assert warehouse.live()["hour_utc"].sort().to_list() == [midnight + timedelta(hours=n) for n in range(-3, 2)]
    assert not list(warehouse.path.glob("pulled/*"))


def test_too_much_health_costs_only_the_health(warehouse: Warehouse) -> None:
    fleet = drive("web", "sda", every(60, hours=40), random.Random(5), "S0")
    with serving(Server(fleet, lambda _, asked, __: error("too many samples") if "smartmon" in asked["query"] else None)) as server:
        summary = land(server, warehouse, 2, START.replace(hour=22))
    assert summary.rows_accepted == 3
    assert [note for note in summary.notes if "health on 2026-01-05 is left out" in note and "too many samples" in note]


def answer(**content: object) -> tuple[int, dict[str, str], bytes]:
    return 200, HEADERS, json.dumps(content).encode()


def matrix(metric: dict[str, str], values: list[object]) -> tuple[int, dict[str, str], bytes]:
    return answer(status="success", data={"resultType": "matrix", "result": [{"metric": metric, "values": values}]})


WHO = {"__name__": "node_disk_reads_completed_total", "instance": "web:9100", "device": "sda"}


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ((401, {}, b"Unauthorized"), "DRIVETAIL_PROMETHEUS_TOKEN"),
        ((403, {}, b"no"), "403"),
        ((404, {}, b"<html>not here</html>"), "is this a Prometheus-compatible server"),
        ((200, HEADERS, b'{"status":"success","data":{"resul'), "no whole JSON answer"),
        ((200, HEADERS, b""), "no whole JSON answer"),
        ((200, HEADERS, b"[" * 100_000), "no whole JSON answer"),
        ((200, {"Content-Length": "1000"}, b"{}"), "cannot be reached"),
        (answer(hello="world"), "no answer of Prometheus"),
        (answer(status="success"), "without data"),
        (answer(status="success", data={"resultType": "vector", "result": []}), "expected a matrix"),
        (answer(status="success", data={"resultType": "matrix", "result": [7]}), "no known shape"),
        (answer(status="success", data={"resultType": "matrix", "result": []}, warnings=["store 3 is down"]), "store 3 is down; try later"),
        (error("parse error", "bad_data", 200), "bad_data: parse error"),
        (matrix(WHO, [[UNIX - 3600, "1"]]), "outside or out of order"),
        (matrix(WHO, [[UNIX + 3600, "2"], [UNIX, "1"]]), "outside or out of order"),
        (matrix(WHO, [[UNIX + 1, "1"]]), "not one of the steps"),
        (matrix(WHO, [[UNIX, 1]]), "outside or out of order"),
        (matrix(WHO, [["soon", "1"]]), "no known shape"),
        (matrix(WHO, [[None, "1"]]), "no known shape"),
    ],
)  # fmt: skip
def test_an_invalid_answer_is_an_error_with_its_reason(broken: tuple[int, dict[str, str], bytes], said: str, warehouse: Warehouse) -> None:
    with serving(Server(a_fleet(), lambda path, parameters, before: broken)) as server, pytest.raises(IngestError, match=said):
        land(server, warehouse)
    assert not list(warehouse.path.glob("raw/deliveries/*"))


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_busy_server_is_asked_again(status: int, warehouse: Warehouse) -> None:
    later = (status, {"Retry-After": "0"}, b"later")
    with serving(Server(a_fleet(), lambda _, __, before: None if before else later)) as server:
        assert land(server, warehouse).rows_accepted == 9


def test_a_server_that_stays_down_is_left(warehouse: Warehouse) -> None:
    with serving(Server(a_fleet(), lambda *_: (503, {}, b"down"))) as server, pytest.raises(PrometheusError, match="503"):
        land(server, warehouse)
    with pytest.raises(PrometheusError, match="run the same command again"):
        Client(server.url).ask("query")


@pytest.mark.parametrize(
    ("byte_seconds", "fault"),
    [(0.05, lambda *_: None), (0.0, lambda *_: (503, {"Retry-After": "3600"}, b"later"))],
)
def test_a_server_that_trickles_or_asks_for_an_hour_is_left(
    byte_seconds: float, fault: Fault, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "ANSWER_SECONDS", 0.5)
    begun = time.monotonic()
    said = "for one answer; select less" if byte_seconds else "for one answer, and sent none"
    with serving(Server(a_fleet(), fault, byte_seconds=byte_seconds)) as server, pytest.raises(PrometheusError, match=said):
        land(server, warehouse, hours=24)
    assert time.monotonic() - begun < 20


def test_a_server_that_wants_a_rest_is_given_a_minute_at_most() -> None:
    retry = Client("http://prometheus:9090").session.get_adapter("http://").max_retries
    assert retry.parse_retry_after("3600") == 60


@pytest.mark.parametrize(
    "said",
    [
        "query processing would load too many samples into memory in query execution",
        "the query exceeded the maximum number of series (limit: 100000 series) (err-mimir-max-series-per-query)",
        "cannot select more than -search.maxSamplesPerQuery=1000000000 samples",
        "the number of matching timeseries exceeds 300000",
        "query timed out in expression evaluation",
    ],
)
def test_each_servers_words_for_too_much_are_known(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Server({}, lambda *_: error(said))) as server, pytest.raises(TooMuch, match="select less with --match"):
        Client(server.url).ask("query")
    # that there are too many questions is no reason to ask more of them
    monkeypatch.setattr(client_module, "RETRIES", 0)
    with serving(Server({}, lambda *_: error(said, status=429))) as server, pytest.raises(PrometheusError) as caught:
        Client(server.url).ask("query")
    assert not isinstance(caught.value, TooMuch)


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"])
def test_an_answer_beyond_the_memory_limit_is_refused_early(encoding: str, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MB may be taken, so an answer may have 4 MB; 200 MB come in a few kB."""
    body = b'{"status":"success","data":' + b" " * 200_000_000
    for _ in encoding.split(", "):
        body = gzip.compress(body, 5)
    assert len(body) < 1_000_000
    monkeypatch.setenv("DRIVETAIL_MEMORY_LIMIT", "64MB")
    with serving(Server(a_fleet(), lambda *_: (200, {**HEADERS, "Content-Encoding": encoding}, body))) as server:
        tracemalloc.start()
        with pytest.raises(TooMuch, match=r"more than 3 MiB, unpacked; .*DRIVETAIL_MEMORY_LIMIT is 64MB"):
            Client(server.url).ask("query")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 32 << 20


def test_servers_error_text_writes_no_line_of_its_own() -> None:
    said = error("no\nfleet: landed, 9 rows in\x1b[2J\u202e", "bad_data", 400)
    with serving(Server({}, lambda *_: said)) as server, pytest.raises(PrometheusError) as caught:
        Client(server.url).ask("query")
    assert str(caught.value).endswith("bad_data: no\\nfleet: landed, 9 rows in\\x1b[2J\\u202e")


def test_too_much_at_once_is_asked_for_in_smaller_parts() -> None:
    def small_steps_only(path: str, asked: dict[str, str], before: int) -> tuple[int, dict[str, str], bytes] | None:
        is_long = int(asked.get("end", 0)) - int(asked.get("start", 0)) > 3600
        return error("query processing would load too many samples into memory") if is_long else None

    with serving(Server(a_fleet(), small_steps_only)) as server:
        in_parts = pull(Client(server.url), Selection(), START, START + timedelta(hours=3))
        server.fault = lambda *_: None
        assert in_parts.equals(pull(Client(server.url), Selection(), START, START + timedelta(hours=3)))


def test_samples_that_are_no_numbers_cost_their_scrape_only(warehouse: Warehouse) -> None:
    fleet = a_fleet()
    key = labels("node_disk_reads_completed_total", instance="web:9100", device="sda")
    at_hour = next(n for n, (at, _) in enumerate(fleet[key]) if at == UNIX + 3600)
    clean = drive_hours(all_readings(fleet))
    for n, bad in ((at_hour, float("nan")), (at_hour - 1, float("inf")), (at_hour - 2, -1.0), (at_hour - 3, 0.5)):
        fleet[key][n] = (fleet[key][n][0], bad)
    summary = pulled(fleet, warehouse)
    # beside them the reset that -1 looks like: then every scrape of both hours is read
    assert {(record["column"], record["reason"]) for record in summary.rejected} == {
        ("reads", "NaN"), ("reads", "infinite"), ("reads", "negative"), ("reads", "not a whole number"),
    }  # fmt: skip
    rows = live_hours(warehouse)
    assert rows.filter(drive_id="S1")["read_ios"].to_list() == clean.filter(drive_id="S1")["read_ios"].to_list()[:2]
    # the hour before ends four minutes early, the hour after begins then: nothing is lost
    assert sum(rows.filter(drive_id="S0")["read_ios"]) == sum(clean.filter(drive_id="S0")["read_ios"].to_list()[:2])
    coverage = [minutes / 60 for minutes in (56, 5, 59)]
    assert rows.filter(drive_id="S0").sort("collected_at")["coverage"].to_list() == pytest.approx(coverage)


def test_hosts_groups_and_devices_go_by_the_labels_that_are_named(warehouse: Warehouse) -> None:
    draw = random.Random(2)
    renamed: Series = {}
    for number in range(3):
        for key, samples in drive("10.0.0.7", f"sd{'abc'[number]}", every(60), draw, f"S{number}", rack="r1", node="web7").items():
            renamed[tuple(sorted((name.replace("device", "disk"), value) for name, value in key))] = samples
    with pytest.raises(IngestError, match="no counter of a drive"):
        pulled(renamed, warehouse)
    pulled(renamed, warehouse, device_label="disk", host_label="node", group_label=("rack", "node"), match=('rack="r1"',))
    assert set(live_hours(warehouse).select("drive_id", "raid_group_id").rows()) == {(f"S{n}", "r1/web7") for n in range(3)}
    assert warehouse.live("drives")["host"].unique().to_list() == ["web7"]


def test_a_serial_that_two_devices_show_names_neither(warehouse: Warehouse) -> None:
    draw = random.Random(4)
    fleet = drive("vm1", "sda", every(60), draw, "QM00001") | drive("vm2", "sda", every(60), draw, "QM00001")
    summary = pulled(fleet, warehouse)
    assert warehouse.live()["drive_id"].unique().sort().to_list() == ["vm1/sda", "vm2/sda"]
    assert any("QM00001" in (file.note or "") for file in summary.files)


def test_two_paths_of_one_world_wide_name_keep_their_serial(warehouse: Warehouse) -> None:
    draw = random.Random(4)
    fleet = drive("web", "sda", every(60), draw, "S7", wwn="0x5a") | drive("web", "sdbj", every(60), draw, "S7", wwn="0x5a")
    pulled(fleet, warehouse)
    assert set(live_hours(warehouse).select("drive_id", "seen_as").rows()) == {("S7", "web/sda"), ("S7", "web/sdbj")}


@pytest.mark.parametrize("is_counted_twice", [False, True])
def test_hidden_paths_count_where_their_nvme_head_counts_nothing(is_counted_twice: bool, warehouse: Warehouse) -> None:
    paths = {name: drive("web", name, every(60), random.Random(n), "S7") for n, name in enumerate(("nvme2c0n1", "nvme2c9n1"))}
    head = drive("web", "nvme2n1", every(60), random.Random(2), "S7")
    still = {key: [(at, 5.0) for at, _ in samples] for key, samples in head.items()}
    pulled({**(head if is_counted_twice else still), **paths["nvme2c0n1"], **paths["nvme2c9n1"]}, warehouse)
    got = live_hours(warehouse)
    draws = (2,) if is_counted_twice else (0, 1)
    parts = [drive_hours(all_readings(drive("web", "sda", every(60), random.Random(n)))) for n in draws]
    assert got.select("seen_as", "drive_id").unique().rows() == [("web/nvme2n1", "S7")]
    assert got["read_ios"].to_list() == [sum(hour) for hour in zip(*(part["read_ios"][:2] for part in parts), strict=True)]
    assert warehouse.live("drives")["drive_id"].unique().to_list() == ["web/nvme2n1"]


def test_members_of_an_array_are_a_group_with_its_spare(warehouse: Warehouse) -> None:
    fleet = a_fleet()
    for n, role in enumerate(("0", "1", "spare")):
        key = labels("drivetail_md_member", instance="web:9100", device=f"sd{'abc'[n]}1", md="md0", uuid="aa:bb:cc:dd", role=role)
        fleet[key] = [(at, 1.0) for at in every(60)]
    pulled(fleet, warehouse)
    assert warehouse.live()["raid_group_id"].unique().to_list() == ["aa:bb:cc:dd"]
    assert warehouse.rows("drives", "drive_id role") == [("web/sda", "data"), ("web/sdb", "data"), ("web/sdc", "spare")]
    assert set(warehouse.rows("drives", "array_name")) == {("md0",)}


def test_where_node_exporter_names_no_drive_the_membership_does(warehouse: Warehouse) -> None:
    fleet = {key: values for key, values in a_fleet().items() if dict(key)["__name__"] != "node_disk_info"}
    for n, serial in enumerate(("", "ZA1", "ZA2")):
        key = labels("drivetail_md_member", instance="web:9100", device=f"sd{'abc'[n]}", md="md0", uuid="u", serial=serial, model="M 1")
        fleet[key] = [(at, 1.0) for at in every(60)]
    pulled(fleet, warehouse)
    drives = warehouse.live("drives").sort("drive_id").select("drive_id", "model", "raid_group_id")
    assert drives.rows() == [(f"web/sd{letter}", "M 1", "u") for letter in "abc"]
    assert warehouse.rows("drive_aliases", "alias drive_id") == [("web/sdb", "ZA1"), ("web/sdc", "ZA2")]


@pytest.mark.parametrize("question", ["reads", "timestamp("])
def test_a_series_that_an_answer_has_twice_ends_the_pull(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Client.query_range

    def twice(self: Client, query: str, start: int, end: int, step: int) -> list[client_module.Series]:
        found = ask(self, query, start, end, step)
        return [*found, *found[:1]] if question in query else found

    monkeypatch.setattr(Client, "query_range", twice)
    with serving(Server(a_fleet())) as server, pytest.raises(PrometheusError, match="twice"):
        pull(Client(server.url), Selection(), START, START + timedelta(hours=1))


ADDRESSES = ["ftp://x", "http://", "http://h:port", "http://h:9090/graph?q=1", "http://ada:pw@h:9090"]


@pytest.mark.parametrize(
    ("url", "first", "end", "said"),
    [
        ("http://127.0.0.1:1", START + timedelta(minutes=5), START + timedelta(hours=1), "two full hours"),
        ("http://127.0.0.1:1", START, START, "two full hours"),
        *((url, START, START + timedelta(hours=1), "address") for url in ADDRESSES),
    ],
)
def test_an_invalid_address_or_range_is_refused(url: str, first: datetime, end: datetime, said: str, warehouse: Warehouse) -> None:
    with pytest.raises(IngestError, match=said):
        ingest("prometheus", url, warehouse.path, first=first, end=end)


def test_any_answer_is_taken_or_refused() -> None:
    """Answers of a server to every question of a pull, nearly as they should be: READING or PrometheusError, nothing else."""
    at = [UNIX, UNIX + 3600]
    target = {"instance": "web1:9100", "device": "sda"}

    def matrix(values: list[str], *more: dict[str, str]) -> dict[str, object]:
        series = [{"metric": {**target, **one}, "values": [list(point) for point in zip(at, values, strict=True)]} for one in more]
        return {"status": "success", "data": {"resultType": "matrix", "result": series}}

    answers = {
        "taken": matrix([str(seconds - 5) for seconds in at], {}),
        "scrapes": matrix(["4", "4"], {}),
        "resets": matrix(["1", "1"], {}),
        "info": matrix(["1", "1"], {"__name__": "node_disk_info", "serial": "S1", "rotational": "1"}),
        "member": matrix(["1", "1"], {"__name__": "drivetail_md_member", "md": "md0", "uuid": "a:b", "role": "data"}),
        "counters": matrix(["100", "200"], *({"__name__": metric} for metric in COUNTERS)),
    }
    kinds = {"timestamp(": "taken", "count_over_time(": "scrapes", "resets(": "resets"}

    class Told(Client):
        given: dict[str, object] = answers

        def ask(self, endpoint: str, parameters: object = None) -> object:
            assert isinstance(parameters, dict)
            query = str(parameters["query"])
            named = {"node_disk_info": "info", "drivetail_md_member": "member"}
            kind = next((kind for begins, kind in kinds.items() if query.startswith(begins)), None)
            kind = kind or next((kind for metric, kind in named.items() if metric in query and "reads" not in query), "counters")
            return self._data(json.dumps(self.given.get(kind)).encode(), 200, query)

    client = Told("http://server:9090")
    first = datetime(2026, 1, 5, 10)

    def check(body: bytes) -> None:
        try:
            given = client._data(body, 200, "all")
            client.given = given if isinstance(given, dict) else {}
            readings = pull(client, Selection(), first, first + timedelta(hours=1))
        except PrometheusError:
            return
        assert readings.schema == READING

    assert pull(client, Selection(), first, first + timedelta(hours=1)).height
    fuzz(mutated_json({"status": "success", "data": answers}), check, "answers of Prometheus")


@pytest.mark.parametrize("way", ["operation", "ops"])
def test_histograms_of_ebpf_exporter_land_beside_the_hours(warehouse: Warehouse, way: str) -> None:
    """In the first hour 90 reads take up to 1 ms, 10 up to 4, and a write more than that; in the second it was started again."""
    begins = START.replace(tzinfo=UTC).timestamp()
    series = counted_drives(begins, begins + 7200)
    reads = {"0.000512": (0, 0, 0), "0.001024": (5, 95, 1), "0.004096": (5, 105, 1), "+Inf": (5, 105, 1)}
    for operation, counts in (("read", reads), ("write", {"0.004096": (0, 0, 0), "+Inf": (0, 1, 1)})):
        for bound, values in counts.items():
            where = {"instance": "web:9435", "job": "ebpf", "device": "sda", way: operation, "le": bound}
            points = [(begins + 3600 * hour, value) for hour, value in enumerate(values)]
            series[labels("ebpf_exporter_bio_latency_seconds_bucket", **where)] = points
    assert pulled(series, warehouse).notes == [] and warehouse.live().height == 6
    rows = warehouse.rows("drive_latencies", "drive_id hour_utc upper_us io_count is_alias")
    assert rows == [("web/sda", START, 1024.0, 90, True), ("web/sda", START, 4096.0, 10, True), ("web/sda", START, 8192.0, 1, True)]
    assert not list(warehouse.path.glob("pulled/**/*.latencies"))


def test_a_drive_whose_tail_ebpf_exporter_sees_is_named(warehouse: Warehouse) -> None:
    """Two of a hundred reads of sdc take up to 100 ms, the others' up to 1 ms."""
    begins = START.replace(tzinfo=UTC).timestamp()
    series = counted_drives(begins, begins + 7200)
    for device, slow in (("sda", 0), ("sdb", 0), ("sdc", 200)):
        for bound, reads in (("0.001024", 10_000 - slow), ("0.065536", 10_000 - slow), ("0.131072", 10_000), ("+Inf", 10_000), ("x", 7)):
            where = {"instance": "web:9435", "job": "ebpf", "device": device, "operation": "read", "le": bound}
            points = [(begins + 3600 * hour, reads * hour) for hour in range(3)]
            series[labels("ebpf_exporter_bio_latency_seconds_bucket", **where)] = points
    (note,) = pulled(series, warehouse).notes
    assert note == "9 latency counts on 2026-01-05 are left out: the count or its bucket is not a number"
    query = "select distinct drive_id, round(p50_slowdown, 1), is_slow from marts.fct_drive_hour_latency where is_p99_slow"
    assert warehouse.built(query) == [("S2", 1.0, False)]
