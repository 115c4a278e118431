"""The gate: every suite over what one ingest has read, before it counts. Rows that break a rule are rejected, else the delivery is held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import Any

import polars as pl

from ingest.contract.errors import GateError
from ingest.contract.fleet import REJECTED_RECORDS
from ingest.contract.values import TIMED, utc_now
from ingest.raw.closing import rejected_records
from ingest.raw.landing import Landing
from ingest.raw.quarantine import GateReport
from ingest.raw.staging import Part
from ingest.reading.files import UNREADABLE, sha256_of
from quality.frames import FILES, HOUR, USUAL, columns, facts, without_duplicates
from quality.history import History
from quality.suites import TABLES, Check, Finding, great_expectations, load_suite, suite_file, validate

BATCH_ROWS = 500_000
"""Drive-hours looked at together, in whole hours: an hour of the largest fleets, months of a small one."""

BROKEN_SHOWN = 20
"""Batches that a check's record names one by one."""

_BROKEN = {"file_no": pl.Int64(), "row_no": pl.Int64(), **{name: REJECTED_RECORDS[name] for name in ("reason", "column", "value")}}


class Gate:
    """A gate for one warehouse; give it to `ingest(..., gate=)`.

    now: the clock's time where not given, UTC without zone. is_rows_only: single rows are looked at, nothing is held back;
    so is a delivery released.
    """

    def __init__(self, warehouse: Path, *, now: datetime | None = None, is_rows_only: bool = False) -> None:
        self.warehouse = Path(warehouse)
        self.now = now
        self.is_rows_only = is_rows_only
        self._suites: dict[str, list[Check]] = {}
        self._source = ""
        self._library: Thread | None = None

    def prepare(self) -> None:
        """Import Great Expectations while the delivery is read: that takes seconds."""
        if self._library is None:
            self._library = Thread(target=_load)
            self._library.start()

    def checks(self, table: str, level: str) -> list[Check]:
        """The checks of a table at a level that are asked of the source at hand. Raises: GateError."""
        if not self._suites:  # all of them first: a broken one is reported before any check runs
            if self._library is not None:
                self._library.join()
            self._suites = {name: load_suite(name, self.warehouse) for name in TABLES}
        asked = [check for check in self._suites[table] if self._source not in check.not_of]
        return [check for check in asked if check.level == level and not (level == "batch" and self.is_rows_only)]

    def check(self, landing: Landing) -> GateReport:
        """Look at all that was read, and take back the rows that break a rule."""
        now, self._source = self.now or utc_now(), landing.source
        history = History(landing.staged.folders, landing.source)
        report = Report(now)
        for table in ("drives", "drive_aliases", "labels", "drive_probes", "drive_events"):
            rows = landing.records(table)
            if rows.height and not landing.is_rolled_up:  # else they are derived, not delivered
                self._look(landing, table, "all", rows, {"known_drives": history.known_drives(now)}, report)
        broken = []
        for first, last, is_new in _hour_batches(landing.staged.parts, history.last_hour()):
            rows = _between(landing.staged.parts, first, last)
            usual = None if self.is_rows_only else history.usual(first)
            drives = usual.drives if usual else pl.DataFrame(schema=USUAL)
            rows = rows.join(drives, left_on=pl.col("drive_id").hash(), right_on="drive", how="left")
            known: dict[str, Any] = {}
            if is_new and not self.is_rows_only:
                known["known_drives"] = history.known_drives(first)
            usual_hour = usual.rows if is_new and usual else None
            broken.append(self._look(None, "drive_hours", _span(first, last), rows, known, report, usual_hour))
        if broken:
            landing.refuse("drive_hours", pl.concat(broken))
        for table in ("drive_samples", "drive_health", "drive_latencies"):  # samples less those of rejected hours
            parts = landing.staged.timed[table]
            for first, last, _ in _hour_batches(parts):
                self._look(None, table, _span(first, last), _between(parts, first, last), {}, report)
        files_read = _files(landing)
        if files_read.height:
            report.add(validate(self.checks("ingested_files", "batch"), files_read, facts("ingested_files", files_read, now), now), "all")
        suites = {table: {"file": str(path := suite_file(table, self.warehouse)), "sha256": sha256_of(path)} for table in TABLES}
        return GateReport(report.reasons(landing), {**report.content(), "is_rows_only": self.is_rows_only, "suites": suites})

    def _look(
        self,
        landing: Landing | None,
        table: str,
        batch: str,
        rows: pl.DataFrame,
        known: dict[str, Any],
        report: Report,
        usual_hour: int | None = None,
    ) -> pl.DataFrame:
        """Look at one batch of records (raw columns). Returns: the broken rows, refused already where `landing` is given."""
        now = report.now
        if not rows.height:
            return pl.DataFrame(schema=_BROKEN)
        findings = validate(self.checks(table, "row"), rows, {**facts(table, rows, now, usual_hour), **known}, now)
        broken = _broken_rows(table, rows, findings, now)
        if landing is not None:
            landing.refuse(table, broken)
        left = without_duplicates(table, rows)  # the delivery is judged by what would land of it
        if broken.height:
            left = left.join(broken, on=["file_no", "row_no"], how="anti", maintain_order="left")
        if left.height:
            findings += validate(self.checks(table, "batch"), left, {**facts(table, left, now, usual_hour), **known}, now)
        report.add(findings, batch)
        return broken


def _load() -> None:
    with suppress(GateError):  # the first check that needs it says so
        great_expectations()


def _broken_rows(table: str, rows: pl.DataFrame, findings: list[Finding], now: datetime) -> pl.DataFrame:
    """The rows that break a row-level check, each once, for the first."""
    found = [pl.DataFrame(schema=_BROKEN)]
    for finding in findings:
        if finding.rows:
            check, name = finding.check, finding.check.columns[0]
            column = derived[name].column if name in (derived := columns(table, now)) else name
            reason = f"gate: {check.type} of {' and '.join(check.columns)}, {finding.allowed}: {check.sentence}"
            found.append(
                rows[list(finding.rows)].select(
                    "file_no", "row_no", pl.lit(reason).alias("reason"), pl.lit(column).alias("column"),
                    pl.col(column).cast(pl.String).str.strip_suffix(".000000").alias("value"),
                )
            )  # fmt: skip
    return pl.concat(found).unique(["file_no", "row_no"], keep="first", maintain_order=True)


def _hour_batches(parts: list[Part], landed: datetime | None = None) -> Iterator[tuple[datetime, datetime, bool]]:
    """Closed ranges of hours of about BATCH_ROWS rows, and whether all of their hours are newer than `landed`."""
    if not parts:
        return
    scan = pl.scan_parquet([part.path for part in parts], glob=False)
    hour = pl.col(TIMED[parts[0].record_kind]).dt.truncate("1h").alias("hour_utc")
    hours = scan.group_by(hour).len().sort("hour_utc").collect()
    is_new = pl.lit(True) if landed is None else pl.col("hour_utc") > landed
    batch = ((pl.col("len").cum_sum() - pl.col("len")) // BATCH_ROWS).alias("batch")
    ranges = hours.with_columns(is_new.alias("is_new"), batch).group_by("is_new", "batch", maintain_order=True)
    for is_new_batch, _, first, last in ranges.agg(
        pl.col("hour_utc").min().alias("first"), pl.col("hour_utc").max().alias("last")
    ).iter_rows():
        yield first, last, is_new_batch


def _between(parts: list[Part], first: datetime, last: datetime) -> pl.DataFrame:
    """The staged records of some hours, both ends included."""
    files = [part.path for part in parts if part.overlaps(first, last + HOUR)]
    at = pl.col(TIMED[parts[0].record_kind])
    return pl.scan_parquet(files, glob=False).filter(at.is_between(first, last + HOUR, closed="left")).collect()


def _span(first: datetime, last: datetime) -> str:
    """The hours of a batch in words."""
    return f"{first:%Y-%m-%d %H:%M}" if first == last else f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"


def _files(landing: Landing) -> pl.DataFrame:
    """Files and rows of the call by record kind, after the gate's own rejections; unreadable files have no rows."""
    read = [result for result in landing.results if result.file_no is not None and result.status != UNREADABLE]
    rows = [{name: getattr(result, name, 1) for name in FILES} for result in read]
    return pl.DataFrame(rows, schema=FILES).group_by("record_kind", maintain_order=True).sum()


def _commonest(landing: Landing) -> str:
    """The reason that most rows of the call were rejected for, with one of them."""
    rejected = rejected_records(landing)
    if not rejected.height:
        return ""
    by_reason = rejected.group_by("reason", maintain_order=True).agg(pl.len(), pl.first("column", "value")).sort("len", descending=True)
    reason, count, column, value = by_reason.row(0)
    return f" Most often ({count:,} times): {column} = {value!r}: {reason}"


class Report:
    """Findings, check by check over all batches."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._found: dict[int, dict[str, Any]] = {}
        self._unit = {
            "drive_hours": "drive-hours of ", "drive_samples": "samples of ", "drive_health": "health of ",
            "drive_latencies": "latencies of ",
            "drive_events": "events, ", "drives": "inventory, ",
            "drive_aliases": "names of drives, ", "labels": "labels, ", "drive_probes": "probes, ",
            "ingested_files": "files, ",
        }  # fmt: skip

    def add(self, findings: list[Finding], batch: str) -> None:
        """Add what was found in one batch; `batch` says which."""
        for finding in findings:
            check = finding.check
            about = {name: getattr(check, name) for name in ("table", "type", "columns", "level", "sentence")}
            none_yet = {"passed": 0, "broken": 0, "left out": 0, "rejected_rows": 0}
            entry = self._found.setdefault(
                id(check), {**about, **none_yet, "why_left_out": None, "observed": None, "allowed": "", "breaks": []}
            )
            entry[finding.state] += 1
            entry["rejected_rows"] += len(finding.rows)
            if finding.state == "left out":
                entry["why_left_out"] = finding.why
            elif finding.state == "passed":
                entry.update(observed=finding.observed, allowed=finding.allowed)
            elif len(entry["breaks"]) < BROKEN_SHOWN:
                entry["breaks"].append({"batch": batch, "observed": finding.observed, "allowed": finding.allowed})

    def reasons(self, landing: Landing) -> list[str]:
        """Why the delivery is held back, a sentence per broken batch-level check; one about rejected rows says why most were."""
        return [
            f"{self._unit[entry['table']]}{entry['breaks'][0]['batch']}: {entry['sentence']} "
            f"({entry['type']}{' of ' + ' and '.join(entry['columns']) if entry['columns'] else ''}: "
            f"{entry['breaks'][0]['observed']}, expected {entry['breaks'][0]['allowed'] or 'it to be there'}"
            + (f"; {entry['broken']} batches of hours" if entry["broken"] > 1 else "")
            + ")"
            + (_commonest(landing) if entry["table"] == "ingested_files" else "")
            for entry in self._found.values()
            if entry["level"] == "batch" and entry["broken"]
        ]

    def content(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {"checked_at": self.now.isoformat(), "checks": list(self._found.values())}
