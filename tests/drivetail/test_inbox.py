"""Entries of an inbox, recognised by names, sizes and times; and settings that cannot be used."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import ingest.raw.arrivals
from drivetail.ask.status import collect_status
from drivetail.feeds.entries import AHEAD, DONE, FAILED, NEW, SETTLING, arrived, hours_of_name, list_entries, partition
from drivetail.feeds.inbox import land_each
from drivetail.feeds.outcomes import BEGUN, HELD, HINDERED, LANDED, NOT_LANDED, NOTHING_NEW, REFUSED, Outcome, register
from drivetail.service import SettingsError
from drivetail.service.settings import Settings, load_settings, settings_file, write_settings
from engine.warehouse import Warehouse
from ingest import GateError, IngestError, IngestSummary, StoreError, list_deliveries
from tests.drivetail.conftest import drivetail

NOW = datetime(2026, 1, 5, 12)


@pytest.fixture
def site(tmp_path: Path) -> tuple[Warehouse, Settings, Path]:
    warehouse, folder = Warehouse(tmp_path / "warehouse"), tmp_path / "inbox"
    folder.mkdir()
    write_settings(warehouse, folder, "bundle", datetime(2026, 1, 5))
    return warehouse, load_settings(warehouse), folder


def put(path: Path, text: str = "x", age: timedelta = timedelta(hours=1)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    at = (NOW - age).replace(tzinfo=UTC).timestamp()
    os.utime(path, (at, at))
    return path


def states(site: tuple[Warehouse, Settings, Path], until: datetime | None = None) -> dict[str, str]:
    return {entry.name: entry.state for entry in list_entries(site[0], site[1], until=until, now=NOW)}


def write_down(site: tuple[Warehouse, Settings, Path], name: str, outcome: str, **more: object) -> None:
    entry = next(entry for entry in list_entries(site[0], site[1], now=NOW) if entry.name == name)
    record = {"at": "2026-01-05T12:00:00", "inbox": "fleet", "path": entry.path, "signature": entry.signature, "outcome": outcome, **more}
    with register(site[0]).path.open("a") as handle:
        handle.write(json.dumps(record) + "\n")


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("drive_hours-2026-01-05T07.csv.gz", datetime(2026, 1, 5, 7), datetime(2026, 1, 5, 7)),
        ("array-3/20260105T07", datetime(2026, 1, 5, 7), datetime(2026, 1, 5, 7)),
        ("2026-01-05_07:00:00.parquet", datetime(2026, 1, 5, 7), datetime(2026, 1, 5, 7)),
        ("2026-01-05.csv", datetime(2026, 1, 5), datetime(2026, 1, 5, 23)),
        ("2026-01-05T00.2026-01-07T03", datetime(2026, 1, 5), datetime(2026, 1, 7, 3)),
        ("inventory", None, None),
        ("S12345678", None, None),
        ("2026-13-45.csv", None, None),
    ],
)
def test_a_name_gives_its_hours(name: str, first: datetime | None, last: datetime | None):
    assert hours_of_name(name) == (first, last)


def test_where_entries_stand(site):
    folder = site[2]
    put(folder / "2026-01-05T10.csv")
    put(folder / "2026-01-05T11.csv", age=timedelta(seconds=30))
    put(folder / "2026-01-05T12.csv")
    put(folder / "inventory/drives.csv")
    put(folder / ".2026-01-05T09.csv")
    put(folder / "_half/drives.csv")
    expected = {"2026-01-05T10.csv": NEW, "2026-01-05T11.csv": SETTLING, "2026-01-05T12.csv": AHEAD, "inventory": NEW}
    assert states(site, until=NOW) == expected
    assert [entry.name for entry in arrived(site[0], site[1], until=NOW, now=NOW)] == ["inventory", "2026-01-05T10.csv"]


def test_a_landed_entry_is_done_until_it_changes(site):
    folder = site[2]
    put(folder / "a/drive_hours.csv")
    put(folder / "b.csv")
    write_down(site, "a", LANDED)
    write_down(site, "b.csv", HELD, held=[7])
    assert states(site) == {"a": DONE, "b.csv": FAILED}
    put(folder / "a/drives.csv")
    put(folder / "b.csv", "sent again")
    assert states(site) == {"a": NEW, "b.csv": NEW}


def test_an_entry_is_dealt_with_when_every_part_in_quarantine_is_decided(site):
    put(site[2] / "web1.20260105T102000Z/diskstats")
    write_down(site, "web1.20260105T102000Z", HELD, held=[7, 8])
    for number, state in ((7, FAILED), (8, DONE)):
        folder = site[0].raw / f"quarantine/{number:06d}"
        folder.mkdir(parents=True)
        for name in ("record.json", "decision.json"):
            (folder / name).write_text("{}")
        assert list(states(site).values()) == [state]
        # as a task that was cleared asks
        (outcome,) = land_each(site[0], site[1], [("fleet", str(site[2] / "web1.20260105T102000Z"))])
        assert outcome.needs_somebody == (state == FAILED)


def test_collected_entries_wait_for_no_hour(site):
    put(site[2] / "web1.20260105T120030Z/diskstats")
    put(site[2] / "web1.20260106T000030Z/diskstats")
    assert states(site, until=NOW) == {"web1.20260105T120030Z": NEW, "web1.20260106T000030Z": AHEAD}
    path = settings_file(site[0])
    path.write_text(path.read_text().replace('source = "bundle"', 'source = "collected"'))
    collected = (site[0], load_settings(site[0]), site[2])
    assert set(states(collected, until=NOW).values()) == {NEW}


def test_a_clock_that_is_ahead_keeps_no_entry_for_ever(site):
    put(site[2] / "a.csv", age=timedelta(days=-2))
    assert states(site) == {"a.csv": NEW}


def test_parts_are_few_and_neighbours_stay_together(site):
    for number in range(9):
        put(site[2] / f"{number}.csv")
    entries = list_entries(site[0], site[1], now=NOW)
    assert [[entry.name[0] for entry in part] for part in partition(entries, 4)] == [["0", "1", "2"], ["3", "4", "5"], ["6", "7", "8"]]
    assert [len(part) for part in partition(entries[:3], 4)] == [1, 1, 1]
    assert partition([], 4) == []


def land_all(site, monkeypatch: pytest.MonkeyPatch, faults: dict[str, BaseException]) -> Iterator[Outcome]:
    """Land every new entry; ingest() fails with these over entries of their names, and finds nothing new in the others."""

    def ingested(source: str, paths: list[str], *arguments: object, **options: object) -> IngestSummary:
        if Path(paths[0]).name in faults:
            raise faults[Path(paths[0]).name]
        return IngestSummary(source, None, [])

    monkeypatch.setattr("drivetail.feeds.inbox.ingest", ingested)
    return land_each(site[0], site[1], [(entry.inbox, entry.path) for entry in arrived(site[0], site[1], now=NOW)])


def test_a_delivery_fails_alone(site, monkeypatch):
    faults = {
        "a": pl.exceptions.PanicException("index out of bounds"),
        "b": ZeroDivisionError("division by zero"),
        "c": OSError(5, "Input/output error", "/inbox/c"),
        "d": StoreError("no room on the disk"),
        "e": GateError("suites/drives.json: no such rule"),
        "f": MemoryError(),
    }
    for name in (*faults, "gone", "good"):
        put(site[2] / name)
    landing = land_all(site, monkeypatch, faults)
    (site[2] / "gone").unlink()
    outcomes = {Path(outcome.path).name: outcome for outcome in landing}
    assert {name: (outcome.outcome, outcome.is_retryable) for name, outcome in outcomes.items()} == {
        **dict.fromkeys("ab", (NOT_LANDED, False)),
        **dict.fromkeys("cdef", (HINDERED, True)),
        "gone": (NOT_LANDED, False),
        "good": (NOTHING_NEW, False),
    }
    assert "PanicException: index out of bounds" in outcomes["a"].message and "/inbox/c: Input/output error" in outcomes["c"].message
    assert outcomes["gone"].message.endswith("was removed from the inbox fleet before it landed; put it back")
    # what has not landed is taken again
    assert [entry.name for entry in arrived(site[0], site[1], now=NOW)] == list(faults)


def test_a_delivery_that_ended_the_process_waits_for_the_others(site, monkeypatch):
    killers = {name: SystemExit("out of memory") for name in ("a", "b")}
    for name in ("a", "b", "c", "d"):
        put(site[2] / name)
    for _ in range(4):
        with pytest.raises(SystemExit):
            list(land_all(site, monkeypatch, killers))
    begun = [Path(record["path"]).name for record in register(site[0]).read() if record["outcome"] == BEGUN]
    assert begun == ["a", "b", "c", "d", "a", "b"]
    assert [entry.name for entry in arrived(site[0], site[1], now=NOW)] == ["a", "b"]


SERVER = """[[servers]]
name = "metrics"
url = "http://prometheus:9090"
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('source = "bundle"', 'source = "bundel"', "inboxes.fleet: source is 'bundel'; give one of arrays, backblaze, bundle"),
        ("retries = 3 ", "retrys = 3 ", "schedule.retrys: unknown key"),
        ("fresh_hours = 3", "fresh_hours = -1", "alarms.fresh_hours is -1; it should be greater than or equal to 0"),
        ("start = 2026-01-05T00:00:00Z", "start = 2026-01-05", "give an instant with its offset"),
        ("[alarms]", "[alarm]", "alarm: unknown key"),
        ("[schedule]", "[schedule", "drivetail.toml"),
        ("[alarms]", '[metrics]\nfile = "metrics.txt"\n[alarms]', "metrics.file is 'metrics.txt'; give a file that ends in .prom"),
        ("[alarms]", "[metrics]\nfile = 7\n[alarms]", "metrics.file is 7; give a path"),
        # of a finer look
        ("[alarms]", '[collect]\nfile = ""\n[alarms]', "collect.file is ''; give a path"),
        ("[alarms]", '[collect]\nfiner_when_slow = "10s"\n[alarms]', "collect: file is missing"),
        ("[alarms]", '[collect]\nfile = "x"\nfiner_when_slow = "1s"\n[alarms]', "collect.finer_when_slow is '1s'; give 5s to 5m"),
        ("[alarms]", '[collect]\nfile = "x"\nfiner_when_slow = 10\n[alarms]', "collect.finer_when_slow is 10;"),
        ("[alarms]", '[collect]\nfile = "x"\nfiner_hours = 0\n[alarms]', "collect.finer_hours is 0;"),
        ("[alarms]", '[collect]\nfile = "x"\nfiner_megabytes = 20000\n[alarms]', "collect.finer_megabytes is 20000;"),
        (
            'source = "bundle"',
            'source = "bundle"\nresolution = "5m"',
            "inboxes.fleet: source 'bundle' does not take 'resolution'; there are name",
        ),
        ('source = "bundle"', 'source = "collected"\ngroup_label = ["pool"]', "settle_minutes, resolution, timezone, year, boot_time"),
        ('source = "bundle"', 'source = "sysstat"\ninterval = "soon"', "interval is 'soon'; give seconds or minutes"),
        ('source = "bundle"', 'source = "sysstat"\ninterval = "10s"', "inboxes.fleet: interval and began go together"),
        ('source = "bundle"', 'source = "sysstat"\nresolution = "2m"', "fleet.resolution is '2m'; it should be '1m', '5m' or '15m'"),
        ('source = "bundle"', 'source = "sysstat"\ntimezone = "Berlin"', "timezone is 'Berlin'; give a time zone, such as Europe/Berlin"),
        ('source = "bundle"', 'source = "collected"\nyear = "this"', "year is 'this'; it should be a valid integer"),
        ('source = "bundle"', 'source = "prometheus"\ngroup_label = "pool"', "group_label is 'pool'; give a list, such as"),
        ('source = "bundle"', 'source = "bundle"\nmin_coverage = 2', "min_coverage is 2; it should be less than or equal to 1"),
        ('name = "fleet"', "", "inboxes.1.name is missing"),
        # of a server
        ('"metrics"', '"fleet"', "two inboxes or servers are named 'fleet'"),
        ("url =", "address =", "servers.metrics.url is missing"),
        ("url =", 'source = "bundle"\nurl =', "servers.metrics: source is 'bundle'; give one of prometheus"),
        ("url =", "token = 7\nurl =", "servers.metrics.token: unknown key"),
        ("url =", "hours = 0\nurl =", "servers.metrics.hours is 0; it should be greater than or equal to 1"),
        ("url =", 'allow_partial = "yes"\nurl =', "allow_partial is 'yes'; give true or false"),
        ("http://prometheus:9090", "prometheus:9090", "servers.metrics.url: 'prometheus:9090'; give the server's address"),
        ("http://prometheus:9090", "http://prometheus:port", "give the server's address, such as http://prometheus:9090"),
        ("http://prometheus:9090", "http://prometheus/?token=s3cret", "'http://prometheus/'; give the server's address"),
        ("http://prometheus", "http://ada:s3cret@prometheus", "servers.metrics.url: it holds credentials, which belong in the environment"),
        ("[[servers]]", "[servers]", "servers: give a list"),
    ],
)
def test_settings_that_cannot_be_used_say_why(site, old: str, new: str, told: str):
    path = settings_file(site[0])
    written = path.read_text() + SERVER
    path.write_text(written)
    assert load_settings(site[0]).servers[0].hours == 2
    assert old in written
    path.write_text(new.join(written.rsplit(old, 1)))
    with pytest.raises(SettingsError, match=r"drivetail\.toml") as error:
        load_settings(site[0])
    assert told in str(error.value) and "\n" not in str(error.value) and "s3cret" not in str(error.value)


def test_settings_are_for_their_owner_only(site):
    path = settings_file(site[0])
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    path.mkdir()  # what a test run by root can not read either
    with pytest.raises(
        SettingsError, match=r"drivetail\.toml: cannot be read \(Is a directory\); it must belong to the user who runs drivetail"
    ):
        load_settings(site[0])


def test_every_setting_of_the_template_can_be_used(site):
    path = settings_file(site[0])
    before, heading, examples = path.read_text().partition("# Where deliveries arrive")
    lines = [line.removeprefix("# ") if " = " in line or "[[" in line else line for line in examples.splitlines()]
    path.write_text(before + heading + "\n".join(lines).replace('source = "bundle"', 'source = "collected"'))
    settings = load_settings(site[0])
    assert settings.inboxes[0].options == {"resolution": "5m", "timezone": "Europe/Berlin", "year": 2026}
    assert (settings.inboxes[1].source, settings.servers[0].options["match"]) == ("collected", ['job="node"'])
    assert {"name", "url", "hours", "kind", "min_coverage"} <= set(dict(settings.servers[0]))


def test_the_metrics_go_into_the_file_that_is_named(site):
    path = settings_file(site[0])
    assert load_settings(site[0]).metrics.file is None
    path.write_text(path.read_text().replace("# [metrics]\n# file", "[metrics]\nfile"))
    assert load_settings(site[0]).metrics.file == Path("/var/lib/prometheus/node-exporter/drivetail.prom")
    path.write_text(path.read_text().replace("/var/lib/prometheus/node-exporter/", ""))
    assert load_settings(site[0]).metrics.file == site[0].root / "drivetail.prom"


def test_settings_are_written_once(site):
    result = drivetail("init", "--inbox", site[2], "-w", site[0].root)
    assert result.exit_code == 1 and "already exists; edit it" in result.output


def test_settings_of_a_server_alone(tmp_path):
    def init(*options: str) -> int:
        return drivetail("init", *options, "-w", tmp_path).exit_code

    server = ("--server", "http://prometheus:9090")
    assert (init(), init("--server", "prometheus:9090"), init(*server, "--source", "collected"), init(*server)) == (2, 2, 2, 0)
    assert [feed.url for feed in load_settings(Warehouse(tmp_path)).feeds] == ["http://prometheus:9090"]


def test_an_inbox_that_cannot_be_read_is_named_and_holds_up_no_other(site):
    """A share that is not mounted: the other inbox is listed and landed."""
    other = site[2].parent / "other"
    with settings_file(site[0]).open("a") as handle:
        handle.write(f'\n[[inboxes]]\nname = "other"\nfolder = "{other}"\nsource = "bundle"\n')
    put(other / "drives.csv", "drive_id,raid_group_id\nd1,g1\n")
    site[2].rmdir()
    told = f"inbox fleet: {site[2]}: No such file or directory; mount or make it, or change drivetail.toml"
    listed = drivetail("inbox", "-w", site[0].root)
    assert listed.exit_code == 1 and "1 new" in listed.output and told in listed.output
    landed = drivetail("inbox", "--land", "-w", site[0].root)
    assert landed.exit_code == 1 and told in landed.output and "1 entry of 2 did not land" in landed.output
    assert len(list_deliveries(site[0].root)) == 1
    put(site[2])
    assert f"{site[2]}: Not a directory" in drivetail("inbox", "-w", site[0].root).output


HOURS_OF_ONE = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us\n2026-01-05T10:00:00,{},grp,9,0,70,\n"


def land_new(site: tuple[Warehouse, Settings, Path]) -> dict[str, Outcome]:
    """Land what has arrived by NOW; the outcomes by the names of the entries."""
    entries = arrived(site[0], site[1], now=NOW)
    landed = land_each(site[0], site[1], [(entry.inbox, entry.path) for entry in entries])
    return {Path(outcome.path).name: outcome for outcome in landed}


def landed_drives(warehouse: Warehouse) -> list[str]:
    files = sorted(warehouse.raw.glob("deliveries/*/drive_hours/*.parquet"))
    return sorted(drive for file in files for drive in pl.read_parquet(file, glob=False)["drive_id"])


def link(path: Path, target: Path | str) -> None:
    """A link that was laid an hour ago."""
    path.symlink_to(target)
    at = (NOW - timedelta(hours=1)).replace(tzinfo=UTC).timestamp()
    os.utime(path, (at, at), follow_symlinks=False)


def test_hostile_names_and_links_fail_alone_and_reveal_nothing(site, tmp_path):
    folder = site[2]
    outside = put(tmp_path / "outside/drive_hours.csv", HOURS_OF_ONE.format("not-yours"))
    put(tmp_path / "outside/key.txt", "private=0451,word=plugh\n")
    put(folder / "drive_hours_a.csv", HOURS_OF_ONE.format("first"))
    put(folder / "drive_hours_z.csv", HOURS_OF_ONE.format("last"))
    os.rename(put(folder / "m", HOURS_OF_ONE.format("misnamed")), os.fsencode(folder) + b"/drive_hours_m\xfe.csv")
    link(folder / "drive_hours_n-loop.csv", "drive_hours_n-loop.csv")
    link(folder / "drive_hours_o-long.csv", "x" * 300)
    link(folder / "drive_hours_p-gone.csv", "not-there.csv")
    link(folder / "drive_hours_q-file.csv", outside)
    link(folder / "drive_hours_r-key.csv", tmp_path / "outside/key.txt")
    link(folder / "s-folder", tmp_path / "outside")
    link(folder / "t-root", "/")
    refused = land_new(site)
    assert {name: outcome.outcome for name, outcome in refused.items() if outcome.outcome != REFUSED} == {
        "drive_hours_a.csv": LANDED,
        "drive_hours_z.csv": LANDED,
    }
    assert len(refused) == 10
    assert refused["drive_hours_m\\xfe.csv"].sentence.endswith("drive_hours_m\\xfe.csv: its name is not UTF-8; rename it")
    assert "Too many levels of symbolic links" in refused["drive_hours_n-loop.csv"].message
    assert "File name too long" in refused["drive_hours_o-long.csv"].message
    assert "leads nowhere" in refused["drive_hours_p-gone.csv"].message
    for name in ("drive_hours_q-file.csv", "drive_hours_r-key.csv", "s-folder", "t-root"):
        assert "leads out of the inbox, which is not followed" in refused[name].message
    assert landed_drives(site[0]) == ["first", "last"]
    kept = b"".join(path.read_bytes() for path in site[0].root.rglob("*") if path.is_file())
    assert b"not-yours" not in kept and b"plugh" not in kept
    # each is said once, and stays failed until it changes
    assert land_new(site) == {}
    assert sorted(set(states(site).values())) == [DONE, FAILED]


def test_folder_entry_with_odd_names_in_it_lands_what_is_good(site):
    folder = site[2] / "2026-01-05"
    put(folder / "drive_hours_1.csv", HOURS_OF_ONE.format("one"))
    os.rename(put(folder / "x", HOURS_OF_ONE.format("two")), os.fsencode(folder) + b"/drive_hours_\xe9.csv")
    link(folder / "drive_hours_loop.csv", "drive_hours_loop.csv")
    link(folder / "drive_hours_long.csv", "y" * 400)
    assert land_new(site)["2026-01-05"].outcome == LANDED
    assert landed_drives(site[0]) == ["one", "two"]
    (recorded,) = site[0].raw.glob("deliveries/*/ingested_files.parquet")
    assert [Path(name).name for name in pl.read_parquet(recorded)["file"]] == ["drive_hours_1.csv", "drive_hours_\\xe9.csv"]


def test_file_that_may_not_be_read_lands_once_it_may(site, monkeypatch):
    """The user of the tests may read everything, so the system's answer is made here. Size and time stay as they are."""
    put(site[2] / "drive_hours_a.csv", HOURS_OF_ONE.format("open"))
    put(site[2] / "drive_hours_b.csv", HOURS_OF_ONE.format("shut"))
    read = ingest.raw.arrivals.sha256_of

    def refuse(path: Path) -> str:
        if path.name == "drive_hours_b.csv":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return read(path)

    with monkeypatch.context() as patched:
        patched.setattr("ingest.raw.arrivals.sha256_of", refuse)
        for again in (False, True):
            outcomes = land_new(site)
            assert outcomes["drive_hours_b.csv"].outcome == HINDERED
            message = outcomes["drive_hours_b.csv"].message
            assert "Permission denied" in message and "tried again" in message and message.count("drive_hours_b.csv") == 1
            assert ("drive_hours_a.csv" in outcomes) != again
    assert len(list_deliveries(site[0].root)) == 2  # the second is the word on the file, once
    assert land_new(site)["drive_hours_b.csv"].outcome == LANDED
    assert landed_drives(site[0]) == ["open", "shut"]


@pytest.mark.parametrize("place", ["drive_hours_a.csv", "folder/drive_hours_a.csv"])
def test_a_right_file_in_the_place_of_a_broken_one_ends_the_problem(site, place: str):
    """Also where its rows have come under another name, so that nothing of it lands."""

    def named() -> list[str]:
        return [problem for problem in collect_status(site[0]).problems if "could not be read" in problem]

    put(site[2] / place, "hour_utc,drive_id\n")
    put(site[2] / "earlier/drive_hours_a.csv", HOURS_OF_ONE.format("one"))
    land_new(site)
    assert len(named()) == 1
    time.sleep(1.1)  # the register knows whole seconds
    put(site[2] / place, HOURS_OF_ONE.format("one"), timedelta(minutes=30))
    (outcome,) = land_new(site).values()
    assert outcome.outcome == NOTHING_NEW and named() == []


@pytest.mark.parametrize("entries", ["*", "*/*"])
def test_folder_that_may_not_be_read_lands_once_it_may(site, monkeypatch, entries: str):
    warehouse, folder = site[0], site[2]
    path = settings_file(warehouse)
    path.write_text(path.read_text().replace('# entries = "*" ', f'entries = "{entries}" '))
    shut = (warehouse, load_settings(warehouse), folder)
    put(folder / "array-1/drive_hours.csv", HOURS_OF_ONE.format("one"))
    put(folder / "array-2/drive_hours.csv", HOURS_OF_ONE.format("two"))
    at = (NOW - timedelta(hours=1)).replace(tzinfo=UTC).timestamp()
    for each in folder.iterdir():
        os.utime(each, (at, at))
    scan, may = os.scandir, os.access

    def refuse(place: str | Path | int = ".") -> object:
        if not isinstance(place, int) and Path(place).name == "array-2":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
        return scan(place)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refuse)
        patched.setattr(os, "access", lambda place, mode: Path(place).name != "array-2" and may(place, mode))
        outcome = land_new(shut)["array-2"]
        assert (outcome.outcome, "array-2 could not be read: cannot be opened: Permission denied" in outcome.message) == (HINDERED, True)
        assert landed_drives(warehouse) == ["one"]
    assert [each.outcome for each in land_new(shut).values()] == [LANDED]
    assert landed_drives(warehouse) == ["one", "two"]


def test_newline_in_an_entrys_name_writes_no_line_of_its_own(site):
    put(site[2] / "drive_hours_\nfleet.csv: landed, 7 rows in, 7 accepted.csv", HOURS_OF_ONE.format("d"))
    at = (datetime.now(UTC) - timedelta(hours=1)).timestamp()
    for path in site[2].iterdir():
        os.utime(path, (at, at))
    printed = drivetail("inbox", "--land", "-w", site[0].root).output
    assert "drive_hours_\\nfleet.csv: landed, 7 rows in" in printed
    assert not [line for line in printed.splitlines() if line.startswith("fleet.csv")]


@pytest.mark.parametrize("place", [".", "raw/deliveries", ".."])
def test_inbox_and_warehouse_that_lie_in_each_other_are_refused(tmp_path, place: str):
    warehouse = Warehouse(tmp_path / "fleet/warehouse")
    with pytest.raises(SettingsError, match=r"it lies in the warehouse|lies in it"):
        write_settings(warehouse, warehouse.root / place, "bundle", datetime(2026, 1, 5))
    write_settings(warehouse, tmp_path / "inbox", "bundle", datetime(2026, 1, 5))
    path = settings_file(warehouse)
    path.write_text(path.read_text().replace(str(tmp_path / "inbox"), str(warehouse.root / place)))
    with pytest.raises(SettingsError, match=r"fleet.folder is .*; give a folder apart from it"):
        load_settings(warehouse)
    with pytest.raises(IngestError, match="lies in the warehouse"):
        ingest.ingest("bundle", [warehouse.root / "raw"], warehouse.root)
