"""Write what a release leaves behind as one file, for tests/drivetail/test_upgrade.py: `python -m tests.drivetail.archive_release 0.1.0`.

Run when a release is cut, in its own checkout. A group of four disks in two stretches of hours, 46 days apart, a host that is seen by its
devices alone, within its hours too, and one of everything that an upgrade has to read again: names of drives, labels, decisions, alerts
that were told, a delivery in quarantine, a pruned past.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
from click.testing import CliRunner

from drivetail.cli import main
from engine.warehouse import Warehouse

HERE = Path(__file__).parent
FIRST = datetime(2026, 1, 5)
STRETCHES = ((range(20, 30), {"a": 250}), (range(46 * 24, 46 * 24 + 4), {"b": 300}))
"""Hours since FIRST, and the latencies (microseconds) of the drives that are slow in them; the others have 100."""
PUBLISHED = ("plan.root", "raw.publication", "marts.publication", "marts.dim_drives")
"""The relations of the publication that test_upgrade.py asks."""


def drive_hours(latency_us: float = 100) -> str:
    rows = ["hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us,collected_at"]
    for hours, slow in STRETCHES:
        for at in (FIRST + timedelta(hours=hour) for hour in hours):
            rows += [f"{at.isoformat()},{drive},g1,10,0,{slow.get(drive, latency_us)},,{at.isoformat()}" for drive in "abcd"]
    return "\n".join(rows) + "\n"


def diskstats() -> str:
    """The two last hours of host web1, a look a minute: a read of 2 ms a second from each of three drives, of 8 ms from sdc."""
    begin = FIRST + timedelta(hours=STRETCHES[1][0][2])
    lines = []
    for minute in range(121):
        lines.append(f"TS {int((begin + timedelta(minutes=minute)).replace(tzinfo=UTC).timestamp())}")
        for number, (name, milliseconds) in enumerate((("sda", 2), ("sdb", 2), ("sdc", 8), ("sdd", 2))):
            ios = 60 * minute
            lines.append(f"8 {16 * number} {name} {ios} 0 {8 * ios} {milliseconds * ios} 0 0 0 0 0 {ios} {milliseconds * ios}")
    return "\n".join(lines) + "\n"


def drivetail(warehouse: Warehouse, *arguments: object, exit_code: int = 0) -> None:
    done = CliRunner().invoke(main, [*map(str, arguments), "-w", str(warehouse.root)], catch_exceptions=False)
    assert done.exit_code == exit_code, done.output


def fill(warehouse: Warehouse, delivered: Path) -> None:
    files = {
        "fleet/drive_hours.csv": drive_hours(),
        "fleet/drives.csv": "drive_id,raid_group_id,role,kind\n" + "".join(f"{drive},g1,data,disk\n" for drive in "abcd"),
        "fleet/drive_events.csv": "occurred_at,drive_id,event_type\n2026-02-20T01:10:00,b,media_error\n",
        "web1/diskstats": diskstats(),
        "mapping.csv": "host,device,drive_id,raid_group_id\n" + "".join(f"web1,sd{each},serial-{each},pool\n" for each in "abcd"),
        "labels.csv": "drive_id,verdict,labelled_by,labelled_on\nb,slow,ann,2026-02-20\n",
        "in-ms/drive_hours.csv": drive_hours(0.1),
    }
    for name, text in files.items():
        (delivered / name).parent.mkdir(parents=True, exist_ok=True)
        (delivered / name).write_text(text)
    drivetail(warehouse, "ingest", "bundle", delivered / "fleet")
    drivetail(warehouse, "ingest", "diskstats", delivered / "web1", "--resolution", "5m", "--kind", "ssd")
    drivetail(warehouse, "map", delivered / "mapping.csv")
    drivetail(warehouse, "ingest", "labels", delivered / "labels.csv")
    drivetail(warehouse, "build")
    drivetail(warehouse, "alerts", "--new")
    drivetail(warehouse, "decide", "b", "replace", "--by", "ada", "--note", "slow for hours")
    drivetail(warehouse, "prune", "--older-than", "45d", "--yes")
    drivetail(warehouse, "ingest", "bundle", delivered / "in-ms", "--gate", exit_code=1)


def keep(path: Path, relations: str) -> None:
    """Leave the relations of a database for which a condition holds: the rest is the models over again, and ten times as large."""
    whole = path.with_name("whole.duckdb")
    path.rename(whole)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"attach '{whole}' as whole (read_only)")
        query = f"select table_schema, table_name from information_schema.tables where table_catalog = 'whole' and {relations}"
        for schema, table in connection.execute(query).fetchall():
            connection.execute(f"create schema if not exists {schema}; create table {schema}.{table} as from whole.{schema}.{table}")
    whole.unlink()


def archive(release: str) -> Path:
    path = HERE / f"warehouse-of-{release}.tar.xz"
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Warehouse(Path(folder) / "warehouse")
        fill(warehouse, Path(folder) / "delivered")
        *earlier, last = sorted(warehouse.publications.glob("*-*.json"))
        for path in (*earlier, *(record.with_suffix(".duckdb") for record in earlier), warehouse.published):
            path.unlink(missing_ok=True)
        keep(warehouse.build_database, "table_schema = 'state'")
        keep(last.with_suffix(".duckdb"), f"table_schema || '.' || table_name in {PUBLISHED}")
        for name in ("build/logs", "build/dbt", "docs"):  # the next command writes them again
            shutil.rmtree(warehouse.root / name, ignore_errors=True)
        with tarfile.open(path, "w:xz", preset=9) as tar:
            tar.add(warehouse.root, "warehouse")
    return path


if __name__ == "__main__":
    made = archive(sys.argv[1])
    print(f"{made}: {made.stat().st_size} bytes")
