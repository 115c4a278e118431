"""What lies in an inbox, told from names, sizes and times; and settings that cannot be used."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from drivetail import settings as settings_module
from drivetail.cli import main
from drivetail.inbox import AHEAD, DONE, FAILED, HELD, LANDED, NEW, SETTLING, arrived, deal, hours_of_name, list_entries, register
from drivetail.settings import Settings, SettingsError, load_settings, settings_file, write_settings
from drivetail.warehouse import Warehouse
from drivetail.watch import late_deliveries
from ingest import SOURCES
from ingest.schema import DRIVE_KINDS

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
        handle.write(json.dumps({"quarantine": None, **record}) + "\n")


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
def test_a_name_tells_its_hours(name: str, first: datetime | None, last: datetime | None):
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


def test_what_landed_is_done_until_it_changes(site):
    folder = site[2]
    put(folder / "a/drive_hours.csv")
    put(folder / "b.csv")
    write_down(site, "a", LANDED)
    write_down(site, "b.csv", HELD, quarantine=7)
    assert states(site) == {"a": DONE, "b.csv": FAILED}
    put(folder / "a/drives.csv")
    put(folder / "b.csv", "sent again")
    assert states(site) == {"a": NEW, "b.csv": NEW}


def test_half_a_line_of_the_register_is_left_out(site):
    put(site[2] / "a.csv")
    write_down(site, "a.csv", LANDED)
    whole = register(site[0]).path.read_text()
    register(site[0]).path.write_text(whole[:-20])
    assert states(site) == {"a.csv": NEW}


def test_a_clock_that_is_ahead_keeps_no_entry_for_ever(site):
    put(site[2] / "a.csv", age=timedelta(days=-2))
    assert states(site) == {"a.csv": NEW}


def test_parts_are_few_and_neighbours_stay_together(site):
    for number in range(9):
        put(site[2] / f"{number}.csv")
    entries = list_entries(site[0], site[1], now=NOW)
    assert [[entry.name[0] for entry in part] for part in deal(entries, 4)] == [["0", "1", "2"], ["3", "4", "5"], ["6", "7", "8"]]
    assert [len(part) for part in deal(entries[:3], 4)] == [1, 1, 1]
    assert deal([], 4) == []


def test_what_came_late_is_named(site):
    from drivetail.inbox import Outcome

    def landed(hour: int) -> Outcome:
        at = f"2026-01-05T{hour:02}:00:00"
        return Outcome("", "fleet", f"/inbox/{hour}", "", LANDED, first_hour=at, last_hour=at)

    (told,) = late_deliveries(site[1], [landed(7), landed(8), landed(11)], datetime(2026, 1, 5, 11))
    assert told.startswith("/inbox/7 came late: its hours (2026-01-05 07:00) end 4 h before 2026-01-05 11:00")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('source = "bundle"', 'source = "bundel"', "source is 'bundel'; give one of backblaze, bundle, diskstats"),
        ("retries = 3 ", "retrys = 3 ", "[schedule] has an unknown key 'retrys'"),
        ("late_hours = 3", "late_hours = -1", "late_hours is -1; give a number of 0 or more"),
        ("start = 2026-01-05T00:00:00Z", "start = 2026-01-05", "give an instant with its offset"),
        ("[alarms]", "[alarm]", "unknown section 'alarm'"),
        ("[schedule]", "[schedule", "drivetail.toml"),
    ],
)
def test_settings_that_cannot_be_used_say_why(site, old: str, new: str, told: str):
    path = settings_file(site[0])
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SettingsError, match=r"drivetail\.toml") as error:
        load_settings(site[0])
    assert told in str(error.value)


def test_settings_are_written_once(site):
    result = CliRunner().invoke(main, ["init", "--inbox", str(site[2]), "--warehouse", str(site[0].root)])
    assert result.exit_code == 1 and "is there already" in result.output


def test_an_inbox_that_is_no_folder_is_named(site):
    site[2].rmdir()
    result = CliRunner().invoke(main, ["inbox", "--warehouse", str(site[0].root)])
    assert result.exit_code == 1 and "is no folder" in result.output


def test_the_names_in_the_settings_are_those_of_ingest():
    assert sorted(SOURCES) == sorted(settings_module.SOURCES)
    assert sorted(DRIVE_KINDS) == sorted(settings_module.DRIVE_KINDS)
