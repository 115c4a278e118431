"""`drivetail explain`: every number it writes is the mart's, and every formula it writes out comes to it."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path

import pytest

from drivetail.ask.explain.question import parse_hour
from drivetail.ask.explain.text import num
from engine.read import stored_files
from engine.warehouse import Warehouse
from tests.drivetail.conftest import Published, drivetail, first_delivery, hour
from tests.proof.support import rows

# one of every sort: corrected, duplicated, idle, hardly observed, slow, moved, contradicted, parity, without inventory
HOURS = [
    ("d11", 7), ("d12", 7), ("d14", 9), ("d15", 9), ("d15", 12), ("d15", 14), ("d15", 17),
    ("v1", 11), ("v1", 12), ("m1", 5), ("p1", 3), ("n1", 29), ("d31", 20),
]  # fmt: skip


@pytest.fixture(scope="module")
def explained(published: Published) -> dict[tuple[str, int], str]:
    return {(drive, number): explain(published, drive, f"{hour(number):%Y-%m-%d %H:%M}") for drive, number in HOURS}


def explain(published: Published, *arguments: str) -> str:
    result = drivetail("explain", *arguments, "-w", published.warehouse.root)
    assert result.exit_code == 0, result.output
    return result.output


def line(text: str, name: str) -> str:
    """The value of a name: the first line that starts with it."""
    found = re.search(rf"^  {re.escape(name)}  +(.*)$", text, re.M)
    assert found, name
    return found[1]


def groups(pattern: str, text: str) -> tuple[str, ...]:
    found = re.search(pattern, text)
    assert found, text
    return found.groups()


def computed(expression: str) -> float:
    """The value of a written-out formula: numbers, + * / and brackets only."""
    assert re.fullmatch(r"[\d.e+\-*/() ]+", expression), expression
    return float(eval(expression))


@pytest.mark.parametrize(("drive", "number"), HOURS)
def test_every_number_is_the_marts(published: Published, explained: dict[tuple[str, int], str], drive: str, number: int) -> None:
    text = explained[drive, number]
    mart = rows(published.warehouse, "select * from marts.fct_drive_hours where drive_id = ? and hour_utc = ?", drive, hour(number))
    if not mart:
        assert drive == "p1"
        assert line(text, "in fct_drive_hours") == "no: not a data drive"
        return
    (row,) = mart
    assert line(text, "latency_us") == num(row["latency_us"])
    assert line(text, "median_latency_us") == num(row["median_latency_us"])
    expected = f"none: {row['exclusion_reason']}" if row["slowdown"] is None else num(row["slowdown"])
    assert line(text, "slowdown S").startswith(expected)
    columns = {"S": "slowdown", "RI": "rate_imbalance", "ZI": "size_imbalance"}
    for name, column in {**columns, "read slowdown": "read_slowdown", "write slowdown": "write_slowdown"}.items():
        written = line(text, name)
        if row[column] is None:
            assert written.startswith("none")
            continue
        formula, result = groups(r"([\d.e+-]+ / [\d.e+-]+)(?: \S+)? = ([\d.e+-]+)", written)
        assert result == num(row[column])
        assert computed(formula) == pytest.approx(row[column], rel=1e-5)
    assert line(text, "slow") == ("yes" if row["is_slow"] else "no")
    assert line(text, "mildly slow") == ("yes" if row["is_slow_15"] else "no")
    if row["latency_us"] is not None:
        formula, result = groups(r"= (\([^=]*) = ([\d.e+-]+) us$", line(text, "merged"))
        assert computed(formula) == pytest.approx(row["latency_us"], rel=1e-5) and result == num(row["latency_us"])
        formula, result = groups(r"(.*) I/Os = (.*) bytes$", line(text, "I/O size"))
        assert computed(formula) == pytest.approx(row["io_size_bytes"], rel=1e-5) and result == num(row["io_size_bytes"])


@pytest.mark.parametrize(("drive", "number"), HOURS)
def test_the_raid_hour_is_the_marts(published: Published, explained: dict[tuple[str, int], str], drive: str, number: int) -> None:
    text = explained[drive, number]
    (group,) = re.findall(r"^Drive .* RAID group (\S+)$", text, re.M)
    (row,) = rows(published.warehouse, "select * from marts.fct_raid_hours where raid_group_id = ? and hour_utc = ?", group, hour(number))
    tails = ", ".join(num(row[name]) for name in ("tail_1", "tail_2", "tail_3"))
    assert line(text, "tails 1, 2, 3").replace(f" ({row['slowest_drive_id']})", "") == tails
    counts = f"{row['reporting_drive_count']} with a slowdown of N = {row['data_drive_count']}, {row['slow_drive_count']} slow"
    assert line(text, "drives") == counts
    assert line(text, "transition") == (row["transition"] or "none: the hour before is not valid")
    if row["rio_degradation"] is not None:
        formula, result = line(text, "RIO degradation").replace("I/Os the hour before ", "").split(" = ")
        assert computed(formula) == pytest.approx(row["rio_degradation"], rel=1e-5) and result == num(row["rio_degradation"])
    # N is what the listed drives come to
    terms = [int(term) for term in re.findall(r"(\d+) (?:with a row|in inventory without a row)", line(text, "N"))]
    assert sum(terms) == row["data_drive_count"]


@pytest.mark.parametrize(("drive", "number"), HOURS)
def test_peers_have_their_raw_rows(published: Published, explained: dict[tuple[str, int], str], drive: str, number: int) -> None:
    text = explained[drive, number]
    text = text[text.index("The drives of ") :]
    peers = re.findall(r"^  [> ] (\w+) +data +([\d.]+) +yes .* (\d+) +(\d+)$", text, re.M)
    files = dict(re.findall(r"^  file (\d+): (.*)$", text.split("\n\n")[0], re.M))
    latencies = []
    for peer, latency, row, file in peers:
        values = Path(files[file]).read_text().splitlines()[int(row)].split(",")
        assert values[:2] == [hour(number).isoformat(), peer]
        reads, writes, read_us, write_us = map(float, values[3:7])
        latencies.append((reads * read_us + writes * write_us) / (reads + writes))
        assert num(latencies[-1]) == latency
    assert latencies == sorted(latencies)
    assert num(statistics.median(latencies)) == line(explained[drive, number], "median_latency_us")


def test_a_conflict_shows_both_records_and_why_one_counts(published: Published, explained: dict[tuple[str, int], str]) -> None:
    text = explained["d11", 7]
    assert "(300 * 4000 + 100 * 12000) / 400 = 6000 us" in text
    assert re.search(r"^ +counts +retired$", text, re.M)
    first, second = published.bundle / "first" / "drive_hours.csv", published.bundle / "second" / "drive_hours.csv"
    assert f"  file 1: {second}\n  file 2: {first}\n" in text
    number = 1 + next(at for at, record in enumerate(first_delivery()) if record.startswith("2026-01-05T07:00:00,d11,"))
    assert re.search(rf"^  row +1 +{number}$", text, re.M)
    assert re.search(r"^  write_latency_us +12000 +9000$", text, re.M)
    reason = "retired by delivery 2: superseded, the latest one counts: its collected_at 2026-01-05 08:00 against 2026-01-05 08:05"
    assert f"row {number} was {reason}" in text
    assert "Raw record\n" in explained["d12", 7]  # an exact duplicate is not stored a second time


def test_drives_outside_the_median_have_a_reason(explained: dict[tuple[str, int], str]) -> None:
    text = explained["d15", 9]
    reasons = {"> d15": "coverage below 0.5", "  d14": "no I/O", "  p1": "role parity_p", "  m1": "reports from g2"}
    for drive, why in reasons.items():
        assert re.search(rf"^  {drive} .*no: {why}", text, re.M), why
    assert "0.3 < min_coverage 0.5" in text
    assert re.search(r"^    s2 .*no: no row in this hour", explained["m1", 5], re.M)


def test_group_and_role(explained: dict[tuple[str, int], str]) -> None:
    assert line(explained["m1", 5], "RAID group") == "g2: its row names it; inventory names g1, and the row counts"
    assert line(explained["n1", 29], "role") == "data: no inventory period covers the hour"
    assert line(explained["v1", 12], "role") == "data: by the inventory period of g2 from 2026-01-05 12:00"
    assert line(explained["p1", 3], "role") == "parity_p: by the inventory period of g1"


def test_interval_and_events(explained: dict[tuple[str, int], str]) -> None:
    text = explained["d15", 14]
    assert len(re.findall(r"^  2026-01-05 12:00  2026-01-05 14:00 +(?:2|1\.5) +3 ", text, re.M)) == 2
    assert re.search(r"^  2026-01-05 13:20 +media_error .*sector 7 +yes +1 +1$", text, re.M)
    assert re.search(r"^  file 1: .*first/drive_events.csv$", text, re.M)
    assert "scrub" not in text  # more than 24 h later
    assert "Slow intervals: the hour is in none" in explained["d15", 17]


def test_when_it_was_computed(published: Published, explained: dict[tuple[str, int], str]) -> None:
    (publication,) = rows(published.warehouse, "select * from marts.publication")
    assert str(publication["publication_id"]) in line(explained["d11", 7], "published")
    assert line(explained["d11", 7], "file").endswith("/store/int_drive_hours/day_utc=2026-01-05/000001.0.parquet")


def test_an_hour_without_a_row(published: Published) -> None:
    text = explain(published, "d15", "2026-01-05T16:20+00:00")
    assert text.startswith("note: 2026-01-05T16:20+00:00 is in the hour that starts at 2026-01-05 16:00")
    assert line(text, "inventory") == "inventory expects one from g1, where it is data"
    assert line(text, "g1") == "4 drives with a slowdown of N = 5 in this hour"
    assert line(text, "unplugged") == "2026-01-05 15:10 to 2026-01-05 17:30"
    assert (line(text, "hour before"), line(text, "hour after")) == ("2026-01-05 15:00", "2026-01-05 17:00")
    never = explain(published, "s2", "2026-01-05 16:00")
    assert "It has no accepted row in any hour" in never


def test_a_drive(published: Published) -> None:
    text = explain(published, "d15")
    (slowness,) = rows(published.warehouse, "select * from marts.fct_drive_slowness where drive_id = 'd15'")
    assert line(text, "hours with a slowdown") == str(slowness["drive_hours"])
    assert line(text, "slow hours") == f"{slowness['slow_hours']} in {slowness['interval_count']} intervals"
    assert line(text, "largest") == num(slowness["max_slowdown"])
    assert re.search(r"^  2026-01-05 15:10 +2026-01-05 17:30 +2\.33333 +no +2-4x", text, re.M)
    assert re.search(rf"^  open +open +g1 +data +disk +5 +1 +5 +1\n  file 1: {published.bundle}/first/drives.csv$", text, re.M)
    assert 'drivetail explain d15 "2026-01-05 14:00"' in text
    moved = explain(published, "v1")
    assert re.search(r"^  g2 +2026-01-05 12:00 +2026-01-06 05:00 +18 +18 +18$", moved, re.M)
    silent = explain(published, "s2")
    assert "Slowdown: none in any hour" in silent
    assert line(silent, "rows") == "none"


def test_errors(published: Published) -> None:
    unknown = drivetail("explain", "D151", "-w", published.warehouse.root)
    assert unknown.exit_code == 1
    assert "no record of the publication names this drive; did you mean d15" in unknown.stderr, "the closest first"
    assert drivetail("explain", "d15", "yesterday", "-w", published.warehouse.root).exit_code == 2
    assert drivetail("explain", "d15", "-w", published.warehouse.root / "nowhere").exit_code == 1


@pytest.mark.parametrize(
    ("text", "expected", "notes"),
    [
        ("2026-01-05 07:00", hour(7), 0),
        ("2026-01-05T07", hour(7), 0),
        ("2026-01-05T07:00:00Z", hour(7), 0),
        ("2026-01-05T09:00+02:00", hour(7), 0),
        ("2026-01-05 07:59:59", hour(7), 1),
        ("2026-01-05", hour(0), 1),
    ],
)
def test_hours_as_people_write_them(text: str, expected: datetime, notes: int) -> None:
    at, found = parse_hour(text)
    assert (at, len(found)) == (expected, notes)


def test_every_file_of_a_day_is_named(tmp_path: Path) -> None:
    """DuckDB may cut a day that it writes together with many others."""
    warehouse = Warehouse(tmp_path)
    warehouse.create()
    day = warehouse.store / "int_drive_hours" / "day_utc=2026-01-05"
    files = [str(day / f"000001.{part}.parquet") for part in range(2)]
    others = [str(day.with_name("day_utc=2026-01-06") / "000001.0.parquet")]
    (warehouse.publications / "000001-x.json").write_text(json.dumps({"store": files + others}))
    assert [str(path) for path in stored_files(warehouse, "000001-x", "int_drive_hours", date(2026, 1, 5))] == files


def test_an_hour_is_explained_without_the_libraries_of_ingest() -> None:
    code = "import drivetail.ask.explain.hour, sys; assert not {'polars', 'pyarrow', 'dbt'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
