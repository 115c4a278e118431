"""The sources of the models as views over the files of a raw folder: what has landed, and decisions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb

from engine.warehouse import quoted
from ingest.raw.store import Folder, names_in, source_of

EARLIER = {"plan.earlier_drive_days": "int_drive_days", "plan.earlier_drive_days__merged": "int_drive_days__merged"}
"""Sources that show what is stored of a day of which only later hours are computed, and of the day before; the model of their rows."""

MEASURED = {"drive_hours": "hour_utc", "drive_samples": "from_utc"}
"""Tables of which a build shows the days that it computes, and the column that says when."""

OF_A_PUBLICATION = ("raw.publication", "raw.relations")
"""Sources that no delivery has."""

LOOKS_BACK = "drive_hours"
"""The first hour of a day is compared with the hour before it."""

_DAY_FILE = re.compile(r"\d{4}-\d\d-\d\d(?:\.\d+)?(?:\.[a-z][a-z-]*)?\.parquet")
_WHOLE_FILE = re.compile(r"([a-z_]+)(?:\.\d+)?(?:\.[a-z][a-z-]*)?\.parquet")

DECISIONS = """
    select
        row_number() over () as decision_seq,
        said.drive_id, said.verdict, said."by" as decided_by, said."at" as decided_at, said.note,
        try_cast(said."until" as timestamp) as until_utc, said.publication_id, said.ticket
    from (
        select json_transform(
            case when json_valid(line) then line end,
            '{{"drive_id": "VARCHAR", "verdict": "VARCHAR", "by": "VARCHAR", "at": "TIMESTAMP", "note": "VARCHAR", "until": "VARCHAR",
              "publication_id": "VARCHAR", "ticket": "VARCHAR"}}'
        ) as said
        -- read_json takes 32 MB a thread, however short the file
        from read_csv(
            {path}, columns = {{line: 'varchar'}}, auto_detect = false, header = false, delim = '\x01', quote = '', escape = '',
            ignore_errors = true, strict_mode = false, hive_partitioning = false, max_line_size = 1048576, buffer_size = 2097152
        )
    )
    -- a killed writer left a line without its end
    where said.drive_id is not null and said."at" is not null and (said."until" is null or try_cast(said."until" as timestamp) is not null)
"""
"""The register of decisions as it is when it is read: a decision counts at once, without a build."""

Columns = Mapping[str, str]


def no_rows(columns: Mapping[str, str | None]) -> str:
    """SQL for no rows of some columns, whose types are known."""
    typed = ", ".join(f'cast(null as {kind}) as "{name}"' for name, kind in columns.items())
    return f"select {typed} where false"


class RawFiles:
    """The Parquet files of some folders of raw: whole tables by name, others by name and UTC day. In order of delivery.

    hidden: deliveries in them that are not to be seen.
    """

    def __init__(self, folders: Iterable[Folder], hidden: Collection[int] = ()) -> None:
        self.hidden = sorted(hidden)
        folders = list(folders)
        self.folders = [folder.path.name for folder in folders]
        self.whole: dict[str, list[Path]] = {}
        self.by_day: dict[str, dict[date, list[Path]]] = {}
        numbers = {number for folder in folders for number in folder.numbers()}
        self.gaps = sorted(set(range(1, max(numbers, default=0))) - numbers)
        """Numbers of deliveries that are not there, below the greatest."""
        for folder in folders:
            for name in names_in(folder.path):
                table, _, file = name.rpartition("/")
                if table and _DAY_FILE.fullmatch(file):
                    self.by_day.setdefault(table, {}).setdefault(date.fromisoformat(file[:10]), []).append(folder.path / name)
                elif match := _WHOLE_FILE.fullmatch(name):
                    self.whole.setdefault(match[1], []).append(folder.path / name)

    def of(self, table: str, days: Iterable[date] | None = None, horizon: date | None = None) -> list[Path]:
        """The files of a table; of one that is kept by day those of some days, or of all from the horizon on."""
        kept = self.by_day.get(table, {})
        wanted = sorted(kept) if days is None else [day for day in sorted(days) if day in kept]
        if table in MEASURED and days is None and horizon is not None:
            wanted = [day for day in wanted if day >= horizon]
        return self.whole.get(table, []) + [path for day in wanted for path in kept[day]]


def rows_of(columns: Columns, files: Sequence[Path], identity: Columns) -> str:
    """SQL for the rows of a raw table's files. identity: columns that a source which names drives and RAID groups itself does not write."""
    if not files:
        return no_rows(columns)
    own = [path for path in files if source_of(path) is None]
    others = [path for path in files if source_of(path) is not None]
    nulls = "".join(f', cast(null as {kind}) as "{name}"' for name, kind in identity.items())
    sides = [f"select *{nulls} from {parquet(own)}"] if own else []
    if identity.keys() & {"from_utc", "array_name"}:
        # an earlier release did not write when within the hour, nor what a host calls an array
        sides += [no_rows(columns), f"select * from {parquet(others, is_by_name=True)}"] if others else []
    else:
        sides += [f"select * from {parquet(others)}"] if others else []
    return " union all by name ".join(sides)


def parquet(files: Iterable[Path], *, is_by_name: bool = False) -> str:
    """SQL that reads Parquet files. A folder above the warehouse such as drive_id=x is no column of theirs.

    is_by_name: files may lack columns.
    """
    by_name = ", union_by_name = true" if is_by_name else ""
    return f"read_parquet([{', '.join(map(quoted, files))}], hive_partitioning = false{by_name})"


def identity_of(table: str, columns: Columns) -> dict[str, str]:
    """The columns of a raw table that say who saw a row, which files of a source that names drives itself lack."""
    if table.startswith("retired_") or table in ("rejected_records", "ingested_files"):
        return {}
    spans = ("from_utc", "to_utc") if table in ("drive_hours", "drive_latencies") else ()
    return {name: columns[name] for name in ("source", "is_alias", "is_group_guessed", "array_name", *spans) if name in columns}


def raw_rows(
    table: str,
    columns: Columns,
    files: RawFiles,
    days: Sequence[date] | None = None,
    horizon: date | None = None,
    since: datetime | None = None,
) -> str:
    """SQL for the rows of a raw table. days: of measured tables those to show, with the hour before each; None: all from the horizon on.

    since: of one day, the first hour to show, with the hour before it.
    """
    found, condition = raw_files(table, files, days, horizon, since)
    rows = rows_of(columns, found, identity_of(table, columns))
    return f"select * from ({rows}) where {condition}" if found and condition else rows


def raw_files(
    table: str, files: RawFiles, days: Sequence[date] | None = None, horizon: date | None = None, since: datetime | None = None
) -> tuple[list[Path], str | None]:
    """The files that the rows of a raw table are in, and the condition on them, if any. See raw_rows()."""
    conditions = []
    if files.hidden:
        by = "retired_by_delivery_seq" if table.startswith("retired_") else "delivery_seq"
        conditions.append(f"{by} not in ({', '.join(map(str, files.hidden))})")
    if table.startswith("retired_") and files.gaps:  # who lost a conflict may have been dropped since
        conditions.append(f"delivery_seq not in ({', '.join(map(str, files.gaps))})")
    if table not in MEASURED or days is None:
        return files.of(table, None, horizon), " and ".join(conditions) or None
    spans = _spans(days, looks_back=table == LOOKS_BACK)
    if since is not None and table == LOOKS_BACK:
        spans = [(since - timedelta(hours=1), end) for _, end in spans]
    shown = {day for begin, end in spans for day in (begin.date(), end.date())} | set(days)
    # a stretch of days is one range: DuckDB skips row groups by one comparison, not by one of many
    at = MEASURED[table]
    ranges = (f"({at} >= timestamp '{begin.isoformat(' ')}' and {at} <= timestamp '{end.isoformat(' ')}')" for begin, end in spans)
    return files.of(table, shown), " and ".join([f"({' or '.join(ranges)})", *conditions])


def _spans(days: Iterable[date], *, looks_back: bool) -> list[tuple[datetime, datetime]]:
    """Instants from the first to the last of each stretch of days, with the hour before it."""
    spans: list[tuple[datetime, datetime]] = []
    for day in sorted(days):
        start = datetime(day.year, day.month, day.day)
        end = start + timedelta(hours=23, minutes=59, seconds=59, microseconds=999999)
        begin = start - timedelta(hours=1) if looks_back and start > datetime(1, 1, 2) else start
        if spans and begin <= spans[-1][1] + timedelta(microseconds=1):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((begin, end))
    return spans


DECIDED = "raw.decisions"


def source_rows(
    sources: Mapping[str, Columns],
    files: RawFiles,
    raw: Path,
    days: Sequence[date] | None = None,
    horizon: date | None = None,
    since: datetime | None = None,
) -> dict[str, str]:
    """SQL for the rows of those sources that are views over files, by name. See raw_rows()."""
    found = {}
    for source, columns in sources.items():
        schema, table = source.split(".")
        if source == DECIDED:
            found[source] = DECISIONS.format(path=quoted(raw / "decisions.jsonl"))
        elif schema == "raw" and source not in OF_A_PUBLICATION:
            found[source] = raw_rows(table, columns, files, days, horizon, since)
    return found


def landed_rows(sources: Mapping[str, Columns], files: RawFiles, raw: Path) -> dict[str, str]:
    """SQL for the rows of what has landed but the drive-hours: of sources whose files are in deliveries."""
    wanted = {name: columns for name, columns in sources.items() if name not in (DECIDED, "raw.drive_hours")}
    return source_rows(wanted, files, raw)


def show_sources(connection: duckdb.DuckDBPyConnection, rows: Mapping[str, str]) -> None:
    """Make sources views."""
    connection.execute(";".join(f"create or replace view {source} as {text}" for source, text in rows.items()))
