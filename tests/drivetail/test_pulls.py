"""Servers of drivetail.toml: every hour is pulled, once however often it is asked for, and a server that is down holds nobody else up."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from drivetail.feeds.inbox import land
from drivetail.feeds.outcomes import HELD, LANDED, register
from drivetail.feeds.pulls import due
from drivetail.service.settings import load_settings
from engine.build import build
from engine.warehouse import Warehouse
from ingest import drive_hour_files, ingest, list_deliveries, table_files
from ingest.sources.prometheus import client as client_module
from ingest.sources.prometheus import spool
from tests.drivetail.conftest import drivetail
from tests.ingest.prometheus_server import FEEDS, Server, counted_drives, serving
from tests.proof.support import marts_differences

START = datetime(2026, 1, 5, 10)
UNIX = 1_767_607_200
HOUR = 3600


def at(hours: float) -> float:
    """Unix seconds of an hour, counted from START."""
    return UNIX + HOUR * hours


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(client_module, "RETRIES", 0)
    for name in (client_module.USER, client_module.PASSWORD, client_module.TOKEN, client_module.TENANT):
        monkeypatch.delenv(name, raising=False)
    with serving(Server(counted_drives(at(-1), at(6)))) as running:
        yield running


@pytest.fixture
def warehouse(tmp_path: Path, server: Server) -> Warehouse:
    made = Warehouse(tmp_path / "warehouse")
    made.create()
    (tmp_path / "inbox").mkdir()
    (made.root / "drivetail.toml").write_text(FEEDS.format(url=server.url, folder=tmp_path / "inbox"))
    return made


def inbox(warehouse: Warehouse, until: int, *, code: int = 0) -> str:
    """`drivetail inbox --land` as it runs a number of hours after START. Returns: its output."""
    done = drivetail("inbox", "--land", "--until", f"{START + timedelta(hours=until):%Y-%m-%dT%H}", "-w", warehouse.root)
    assert done.exit_code == code, done.output
    return str(done.output)


def pull(warehouse: Warehouse, server: Server, first: float, end: float, **options: object) -> None:
    """Pull the hours from `first` until `end`, counted from START."""
    ingest(
        "prometheus", server.url, warehouse.root,
        first=START + timedelta(hours=first), end=START + timedelta(hours=end), source_options=options,
    )  # fmt: skip


def live(warehouse: Warehouse) -> pl.DataFrame:
    """The drive-hours that count, without where they came from."""
    deliveries = list_deliveries(warehouse.root)
    rows = pl.concat([pl.read_parquet(path) for delivery in deliveries for path in drive_hour_files(delivery)])
    for path in table_files(deliveries, "retired_drive_hours"):
        rows = rows.join(pl.read_parquet(path), on=["delivery_seq", "file_no", "row_no"], how="anti")
    return rows.drop("delivery_seq", "file_no", "row_no").sort("drive_id", "hour_utc")


def pulls(warehouse: Warehouse) -> list[tuple[str, str]]:
    """The outcomes of what was pulled, in order, and of which hours."""
    return [(line["outcome"], line["path"].rpartition("!")[2]) for line in register(warehouse).read() if line["inbox"] == "metrics"]


def test_hours_pulled_one_by_one_are_those_of_one_pull(warehouse: Warehouse, server: Server, tmp_path: Path) -> None:
    # the last scrapes of 11:00 have not reached the server when its hour is pulled
    server.series = counted_drives(at(-1), at(1.6))
    assert "; 1 server pulled" in inbox(warehouse, 2)
    first = live(warehouse)
    assert first["coverage"].to_list() == pytest.approx([1.0, 0.6] * 3)
    assert "nothing new" in inbox(warehouse, 2)
    assert live(warehouse).equals(first) and len(list_deliveries(warehouse.root)) == 1

    server.series = counted_drives(at(-1), at(6))
    inbox(warehouse, 3)
    inbox(warehouse, 4)
    whole = Warehouse(tmp_path / "whole")
    pull(whole, server, 0, 4)
    assert live(whole)["coverage"].to_list() == [1.0] * 12
    assert live(warehouse).equals(live(whole))
    assert pulls(warehouse) == [
        ("landed", "2026-01-05T10.2026-01-05T12"),
        ("nothing new", "2026-01-05T10.2026-01-05T12"),
        ("landed", "2026-01-05T11.2026-01-05T13"),
        ("landed", "2026-01-05T12.2026-01-05T14"),
    ]


def kept_values(warehouse: Warehouse, table: str = "drives", shown: str = "model") -> list[str]:
    """By delivery what it keeps of drive S1: the column, from when it holds and, where it says so, until when; in order."""
    found = []
    for delivery in list_deliveries(warehouse.root):
        rows = [row for path in table_files([delivery], table) for row in pl.read_parquet(path).sort("valid_from").iter_rows(named=True)]
        until = [f"-{row['valid_to']:%H}" if row["valid_to"] else "" for row in rows]
        texts = [f"{row[shown]} {row['valid_from']:%H}{end}" for row, end in zip(rows, until, strict=True)]
        found.append(", ".join(text for text, row in zip(texts, rows, strict=True) if row["drive_id"] in ("S1", "web/sdb")))
    return found


def changed(server: Server, device: str, of: list[tuple[float, float, dict[str, str]]]) -> None:
    """Let the drive in a place report other values in some spans, each from and until an hour counted from START."""
    for given in [given for given in server.series if ("device", device) in given and ("__name__", "node_disk_info") in given]:
        samples = server.series.pop(given)
        for begin, end, says in [*of, (-9, 99, {})]:
            own = [each for each in samples if at(begin) <= each[0] < at(end)]
            samples = [each for each in samples if each not in own]
            series = tuple(sorted({**dict(given), **says}.items()))
            server.series[series] = sorted([*server.series.get(series, []), *own])


@pytest.mark.parametrize(
    ("spans", "kept"),
    [
        pytest.param([(10, 15)], ["A 10-11, B 12-13, A 14"], id="at once"),
        # what was seen once in a call before another came says no more than the record before
        pytest.param([(10, 11), (11, 12), (12, 13), (13, 14), (14, 15)], ["A 10", "B 12", "", "A 14", ""], id="one by one"),
        pytest.param([(10, 11), (10, 12), (13, 14), (12, 15)], ["A 10", "A 10-11, B 12", "A 14", "B 12-13"], id="again"),
        pytest.param([(10, 11), (13, 14), (14, 15), (12, 13), (11, 12)], ["A 10", "A 14", "", "B 12", ""], id="later ones first"),
        pytest.param([(14, 15), (13, 14), (12, 13), (10, 12)], ["A 14", "", "B 12", "A 10-11"], id="backwards"),
    ],
)
def test_inventory_is_kept_where_it_adds_something(
    warehouse: Warehouse, server: Server, spans: list[tuple[int, int]], kept: list[str]
) -> None:
    """At 12:00 and 13:00 drive S1 calls itself B, else A. Of two records of a time the one that says until when stays."""
    server.series = counted_drives(at(-1), at(6))
    changed(server, "sdb", [(-9, 1.5, {"model": "A"}), (1.5, 3.5, {"model": "B"}), (3.5, 99, {"model": "A"})])
    for first, end in spans:
        pull(warehouse, server, first - START.hour, end - START.hour)
    assert kept_values(warehouse) == kept
    assert kept_values(warehouse, "drive_aliases", "alias") == [text.replace("A ", "web/sdb ").replace("B ", "web/sdb ") for text in kept]


def test_a_drive_that_a_finer_look_loses_is_described_again_on_return(warehouse: Warehouse, server: Server) -> None:
    """Around 12:30 the drive has no serial; hours do not show it, five minutes do: it ends at 12:00, so that it begins again is new."""
    server.series = counted_drives(at(-1), at(6))
    changed(server, "sdb", [(2.26, 2.6, {"serial": ""})])
    pull(warehouse, server, 0, 5)
    pull(warehouse, server, 0, 5, resolution="5m")
    assert kept_values(warehouse) == ["A DISK 10", "A DISK 10-12, A DISK 12-12, A DISK 12"]
    assert kept_values(warehouse, "drive_aliases", "alias") == ["web/sdb 10", "web/sdb 10-12, web/sdb 12"]


def test_a_group_added_to_the_settings_gets_hours_seen_before(warehouse: Warehouse, server: Server) -> None:
    server.series = counted_drives(at(-1), at(6))
    pull(warehouse, server, 0, 5)
    for _ in range(2):
        pull(warehouse, server, 4, 5, group_label=["job"])
    assert kept_values(warehouse, shown="raid_group_id") == ["web 10", "node 14"]


def test_samples_that_came_without_hours_count_once(warehouse: Warehouse, server: Server) -> None:
    pull(warehouse, server, 0, 3)
    for first in (0, 1, 0):
        pull(warehouse, server, first, 3, resolution="5m")
    paths = [path for delivery in list_deliveries(warehouse.root) for path in drive_hour_files(delivery, record_kind="drive_samples")]
    samples = pl.concat([pl.read_parquet(path) for path in paths])
    assert samples.height == samples.select("drive_id", "from_utc", "to_utc").n_unique() == 3 * 3 * 12


def test_pieces_of_another_call_stay_where_they_are(warehouse: Warehouse, server: Server) -> None:
    """A long pull is under way while the hour's lands."""
    other = spool(warehouse.root, server.url, {}) / "2026-01-01T00.2026-01-02T00.parquet"
    other.parent.mkdir(parents=True)
    half, dead = other.with_suffix(".1.half"), other.with_suffix(".2.half")
    for path in (other, half, dead):
        path.write_text("")
    os.utime(dead, (0, 0))
    pull(warehouse, server, 0, 1)
    assert sorted(other.parent.iterdir()) == [half, other]


@pytest.mark.soak
@pytest.mark.parametrize(
    "changes",
    [
        [],
        pytest.param([(2.5, 99, {"serial": "S9"})], id="replaced"),
        pytest.param([(1.5, 2.5, {"serial": ""})], id="without a serial for an hour"),
        pytest.param([(1.5, 2.5, {"serial": "S9"})], id="replaced and back"),
    ],
)
def test_marts_of_hours_pulled_one_by_one_are_those_of_one_pull(
    warehouse: Warehouse, server: Server, tmp_path: Path, changes: list[tuple[float, float, dict[str, str]]]
) -> None:
    for until, scraped in ((2, 1.6), (2, 1.6), (3, 6), (4, 6)):
        server.series = counted_drives(at(-1), at(scraped))
        changed(server, "sdb", changes)
        inbox(warehouse, until)
        build(warehouse, daily=until == 4)
    whole = Warehouse(tmp_path / "whole")
    pull(whole, server, 0, 4)
    build(whole)
    assert marts_differences(warehouse.published, whole.published) == []


def test_a_server_that_is_down_is_named_and_asked_for_the_hours_later(warehouse: Warehouse, server: Server, tmp_path: Path) -> None:
    inbox(warehouse, 1)
    server.fault = lambda path, parameters, before: (503, {}, b"down")
    (tmp_path / "inbox/drives.csv").write_text("drive_id,raid_group_id\nd1,g1\n")
    output = inbox(warehouse, 2, code=1)
    assert "server metrics: " in output and "503" in output and "the next hourly run pulls these hours again" in output
    assert "drives.csv: landed, 1 rows in" in output and "1 entry of 2 did not land (see above), the others have landed" in output
    shown = drivetail("inbox", "-w", warehouse.root).output
    assert "2026-01-05 10:00" in shown and "503" in shown and "1 done" in shown

    inbox(warehouse, 3, code=1)
    server.fault = lambda path, parameters, before: None
    inbox(warehouse, 4)
    assert pulls(warehouse)[-1] == ("landed", "2026-01-05T10.2026-01-05T14")
    assert live(warehouse)["hour_utc"].unique().sort().to_list() == [START + timedelta(hours=number) for number in range(-1, 4)]
    shown = drivetail("inbox", "-w", warehouse.root).output
    assert "2026-01-05 13:00" in shown and "503" not in shown


def test_a_server_may_have_the_name_that_an_inbox_had(warehouse: Warehouse, server: Server) -> None:
    before = {"at": "2026-01-05T11:00:00Z", "inbox": "metrics", "path": "/srv/in/2026-01-05.prom", "signature": "0a", "outcome": LANDED}
    written = register(warehouse)
    with written.locked():
        written.append([before])
    assert "1 server pulled" in inbox(warehouse, 2)
    assert "2026-01-05 11:00" in drivetail("inbox", "-w", warehouse.root).output


def test_a_run_of_the_past_pulls_its_own_hours(warehouse: Warehouse, server: Server) -> None:
    settings = load_settings(warehouse)

    def asked(until: int) -> str:
        (pull,) = due(warehouse, settings, START + timedelta(hours=until))
        return pull.path.rpartition("!")[2]

    assert asked(4) == "2026-01-05T12.2026-01-05T14"
    inbox(warehouse, 4)
    assert [asked(until) for until in (2, 4, 5)] == [
        "2026-01-05T10.2026-01-05T12", "2026-01-05T12.2026-01-05T14", "2026-01-05T13.2026-01-05T15",
    ]  # fmt: skip
    # between two pulls: back to where the one before it ended
    inbox(warehouse, 0)
    assert (asked(3), asked(5)) == ("2026-01-05T09.2026-01-05T13", "2026-01-05T13.2026-01-05T15")
    now = datetime(2100, 1, 1)
    (pull,) = due(warehouse, settings, now)
    assert pull.path < f"{server.url}!{now:%Y-%m-%dT%H}"


def test_hours_that_are_held_are_not_asked_for_for_ever(warehouse: Warehouse, server: Server) -> None:
    settings = load_settings(warehouse)
    inbox(warehouse, 2)
    with register(warehouse).path.open("a") as lines:
        line = register(warehouse).path.read_text().splitlines()[-1]
        lines.write(line.replace('"landed"', f'"{HELD}"').replace("T10.2026-01-05T12", "T11.2026-01-05T13") + "\n")
    (pull,) = due(warehouse, settings, START + timedelta(hours=4))
    assert pull.path.endswith("!2026-01-05T12.2026-01-05T14")


def test_a_pull_that_was_killed_before_its_line_is_done_again(warehouse: Warehouse, server: Server) -> None:
    inbox(warehouse, 2)
    before = live(warehouse)
    register(warehouse).path.unlink()
    settings = load_settings(warehouse)
    (pull,) = due(warehouse, settings, START + timedelta(hours=2))
    assert land(warehouse, settings, pull.inbox, pull.path).outcome == "nothing new"
    assert live(warehouse).equals(before)


def test_requests_to_a_server_follow_the_settings(warehouse: Warehouse, server: Server) -> None:
    path = warehouse.root / "drivetail.toml"
    more = 'hours = 3\nkind = "ssd"\nmin_coverage = 0.9\nresolution = "15m"\ngroup_label = ["job"]\nmatch = [\'job="node"\']\n'
    path.write_text(path.read_text().replace("\n\n[[inboxes]]", f"\n{more}\n[[inboxes]]"))
    shutil.rmtree(warehouse.root.parent / "inbox")
    path.write_text(path.read_text().partition("[[inboxes]]")[0])
    inbox(warehouse, 3)
    rows = live(warehouse)
    assert rows["hour_utc"].n_unique() == 3
    assert rows.select("raid_group_id", "min_coverage", "declared_kind").unique().rows() == [("node", 0.9, "ssd")]
    samples = [path for delivery in list_deliveries(warehouse.root) for path in drive_hour_files(delivery, record_kind="drive_samples")]
    assert sum(pl.read_parquet(path).height for path in samples) == 3 * 3 * 4


def test_a_server_that_cannot_be_reached_is_no_error_of_usage(warehouse: Warehouse) -> None:
    done = drivetail("ingest", "prometheus", "http://127.0.0.1:9", "-w", warehouse.root)
    assert done.exit_code == 1 and "http://127.0.0.1:9 cannot be reached" in done.output and "Usage" not in done.output
