"""Metrics for a monitor: the status and the fleet's last hours in Prometheus' text format (docs/monitoring.md).

Every number is a mart's, the status' or a record's of the warehouse; here they only get names. Instants are given as such
(`_timestamp_seconds`), so that an age is right also when it is asked later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client import generate_latest, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from drivetail.ask.candidates import list_candidates
from drivetail.ask.status import Status, collect_status
from drivetail.ask.status.content import HOUR
from drivetail.tell.alerts import open_alerts
from engine.read import QueryError, Row, fetch, publication_of
from engine.warehouse import Warehouse
from ingest.raw.store import list_folders

ROWS = {
    "delivered": (CounterMetricFamily, "Rows that were delivered."),
    "rejected": (CounterMetricFamily, "Rows that broke the contract; marts.rejected_records has each."),
    "duplicate": (CounterMetricFamily, "Rows that had arrived before, equal in every column."),
    "accepted": (GaugeMetricFamily, "Rows that count; one that loses a conflict later is superseded then."),
    "superseded": (GaugeMetricFamily, "Rows that lost a conflict."),
}

MAX_SERIES = 200
"""Number of series of one metric with a label that names a drive, at most."""


def metrics_text(warehouse: Warehouse, now: datetime | None = None) -> str:
    """The metrics of a warehouse. `now` (UTC without zone) is the clock's time where not given.

    Raises: QueryError when raw, or what a publication shows, cannot be read.
    """
    return generate_latest(_Collected(warehouse, now)).decode()


def write_metrics(warehouse: Warehouse, out: Path, now: datetime | None = None) -> Path:
    """Write the metrics in one step: node_exporter reads the old file or the new one. Returns: the file."""
    collected = _Collected(warehouse, now)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_to_textfile(str(out), collected)
    return out


class _Collected(Collector):
    """The metrics of a warehouse, as the library writes them."""

    def __init__(self, warehouse: Warehouse, now: datetime | None) -> None:
        status = collect_status(warehouse, now)
        self._content = [*_of_status(status), *_of_raw(status), *_of_freshness(status), *_of_durations(warehouse, status)]
        if status.publication["state"] == "published":
            self._content += [*_of_fleet(warehouse), *_of_alerts(warehouse), *_of_candidates(warehouse)]

    def collect(self) -> Iterable[Metric]:
        return self._content


def _gauge(name: str, help_: str, value: float | None) -> Iterator[Metric]:
    """One number; nothing where it is not known, so that a rule can distinguish it from 0."""
    if value is not None:
        yield GaugeMetricFamily(f"drivetail_{name}", help_, value=value)


def _instant(name: str, help_: str, at: datetime | None) -> Iterator[Metric]:
    yield from _gauge(f"{name}_timestamp_seconds", f"{help_}, unix time.", None if at is None else at.replace(tzinfo=UTC).timestamp())


def _end_of(hour: datetime | None) -> datetime | None:
    """The end of an hour, as far as the calendar goes: a clock that is wrong may name its last hour."""
    return None if hour is None else min(hour, datetime.max - HOUR) + HOUR


def _series(name: str, help_: str, labels: Sequence[str], value: str, rows: Iterable[Row], family: Any = GaugeMetricFamily) -> Metric:
    """Rows as samples of one metric; labels and value are keys of the row."""
    metric = family(f"drivetail_{name}", help_, labels=labels)
    for row in rows:
        if row[value] is not None:
            metric.add_metric(["" if row[key] is None else str(row[key]) for key in labels], row[value])
    return metric  # type: ignore[no-any-return]


def _of_status(status: Status) -> Iterator[Metric]:
    publication = status.publication
    is_published = publication["state"] == "published"
    yield from _instant("written", "When these metrics were written", status.at)
    yield from _gauge("problems", "What needs an operator; `drivetail status` says what.", len(status.problems))
    yield from _gauge("publication_usable", "Whether readers find a publication (0 or 1).", int(is_published))
    yield from _gauge("free_bytes", "Room on the disk of the warehouse.", status.free_bytes)
    yield from _gauge("unbuilt_deliveries", "Deliveries that landed and no publication holds.", status.unbuilt["count"])
    yield from _gauge("quarantined_deliveries", "Deliveries that the gate holds back.", status.quarantined["count"])
    if not is_published:
        return
    last = publication["last_hour_utc"]
    yield from _instant("last_publication", "When the last publication was made", publication["published_at"])
    yield from _instant("last_hour", "End of the last valid RAID-hour of the publication", _end_of(last))
    yield from _gauge(
        "lag_seconds",
        "How long the last valid RAID-hour of the publication had ended when these metrics were written.",
        None if last is None else (status.at - last - HOUR).total_seconds(),
    )
    yield from _gauge("drives", "Drives with rows.", publication["drive_count"])
    yield from _gauge("raid_groups", "RAID groups with rows.", publication["raid_group_count"])


def _of_raw(status: Status) -> Iterator[Metric]:
    landed = status.landed
    rows = [row for row in landed["by_source"] if row["status"] == "landed"]
    for name, (family, help_) in ROWS.items():
        yield _series(f"rows_{name}", help_, ("source", "record_kind"), name, rows, family)
    files = [{"status": state, "count": count} for state, count in landed["files"].items()]
    yield _series("files", "Files that were delivered, landed or unreadable.", ("status",), "count", files, CounterMetricFamily)
    yield CounterMetricFamily("drivetail_deliveries", "Deliveries that have landed.", value=landed["delivery_count"])
    last = landed["last_delivery"]
    yield from _instant("last_delivery", "When the last delivery landed", last and last["ingested_at"])
    yield from _instant("last_landed_hour", "End of the last hour that has landed", _end_of(landed["last_hour_utc"]))


def _of_freshness(status: Status) -> Iterator[Metric]:
    freshness = status.freshness
    if freshness is None:
        return
    groups = freshness["lagging_groups"]
    yield from _gauge("raid_groups_lagging", "RAID groups behind the fleet's last hour, those that stopped among them.", groups["count"])
    yield from _gauge("raid_groups_stopped", "RAID groups that stopped reporting.", freshness["stopped_group_count"])
    yield from _gauge(
        "drives_silent", "Drives without rows while their RAID group, or other hosts, go on.", freshness["silent_drives"]["count"]
    )
    help_ = (
        "How long a host, or some of its drives, has sent nothing while others go on; by RAID group where no host is known. At most 200."
    )
    rows = [{**row, "seconds": row["silent_for_hours"] * HOUR.total_seconds()} for row in freshness["silent_hosts"]["rows"]]
    yield _series("host_silent_seconds", help_, ("host", "raid_group_id"), "seconds", rows)
    help_ = "How far a RAID group is behind the fleet's last hour; only those that are, at most the first 200."
    rows = [{**row, "seconds": None if row["lag_hours"] is None else row["lag_hours"] * HOUR.total_seconds()} for row in groups["rows"]]
    yield _series("raid_group_lag_seconds", help_, ("raid_group_id",), "seconds", rows)


def _of_durations(warehouse: Warehouse, status: Status) -> Iterator[Metric]:
    """How long the last ingest and the last build took, by their own records; one made by an earlier release says nothing."""
    folders = list_folders(warehouse.root)
    if folders:
        last = folders[-1].deliveries()[-1]
        seconds = (last.record() if last.said else _record(last.path / "delivery.json")).get("ingest_seconds")
        yield from _gauge("ingest_duration_seconds", "How long the ingest of the last delivery took.", seconds)
    if status.publication["state"] == "published":
        record = _record(warehouse.publications / f"{status.publication['publication_id']}.json")
        yield from _gauge("build_duration_seconds", "How long the build of the last publication took.", record.get("build_seconds"))
        rows = [{"model": model, "seconds": seconds} for model, seconds in record.get("model_seconds", {}).items()]
        help_ = "How long each model took in the build of the last publication, with its tests."
        yield _series("model_duration_seconds", help_, ("model",), "seconds", rows)


def _record(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:  # removed since it was listed, or a published file that was copied here alone
        return {}
    except ValueError as error:
        raise QueryError(f"{path}: cannot be read ({error}); it never changes once written, restore it from a copy") from error


def _of_fleet(warehouse: Warehouse) -> Iterator[Metric]:
    """The fleet's last day: how often RAID groups met a slow drive, and the slowest drives."""
    with publication_of(warehouse) as connection:
        tails = fetch(connection, "select * from status.fct_recent_tails order by kind")
        drives = fetch(connection, "select * from status.fct_recent_slowness order by slowness_rank")
    for name, key, help_ in (
        ("raid_group_samples", "raid_hours", "Valid RAID-hours of the last day."),
        ("tail_samples", "tail_hours", "RAID-hours of the last day with a slow drive."),
        ("tail_ratio", "tail_ratio", "Share of RAID-hours of the last day with a slow drive."),
        ("drive_samples", "drive_hours", "Drive-hours of the last day with a slowdown."),
        ("slow_samples", "slow_drive_hours", "Slow drive-hours of the last day."),
        ("slow_ratio", "slow_ratio", "Share of slow drive-hours of the last day."),
    ):
        yield _series(name, help_, ("kind",), key, tails)
    labels = ("drive_id", "raid_group_id", "kind", "model", "host", "device", "slot")
    help_ = "Greatest slowdown of the last day against the drives of the same RAID group; the 200 slowest, if at least mildly slow."
    yield _series("drive_slowdown_ratio", help_, labels, "slowdown", drives)


def _of_alerts(warehouse: Warehouse) -> Iterator[Metric]:
    """The open alerts, as `drivetail alerts` lists them: 1 each, for Alertmanager to notify, group and silence."""
    alerts = open_alerts(warehouse)
    yield from _gauge("slow_alerts", "Open alerts; drivetail_slow_alert has at most the latest 200.", len(alerts))
    place = ("host", "device", "enclosure", "slot")
    labels = ("reason", "subject_type", "subject_id", "raid_group_id", "raid_group_name", *place, "kind", "model")
    rows = [{**vars(alert), "is_open": 1} for alert in alerts[:MAX_SERIES]]
    help_ = "Drives, hosts, enclosures and RAID groups that have become slow; not those dismissed or covered by another alert."
    yield _series("slow_alert", help_, labels, "is_open", rows)
    help_ = "How many times as slow as its peers the drive of an open alert was, or a RAID group as usual: the median of its slow hours."
    yield _series("slow_alert_ratio", help_, labels, "median_slowdown", rows)


def _of_candidates(warehouse: Warehouse) -> Iterator[Metric]:
    """The drives that `drivetail candidates` lists, with the tail hours that each cost and that a swap costs."""
    candidates = list_candidates(warehouse)
    yield from _gauge("candidates", "Drives to replace, watch or check; the series of each are of the first 200.", len(candidates))
    labels = ("drive_id", "verdict", "decision", "raid_group_id", "host", "device", "enclosure", "slot", "kind", "model")
    for name, column, help_ in (
        ("own_tail", "own_tail_hours_28d", "Tail hours, in seconds, that a drive cost in 28 days; `drivetail candidates` says why."),
        ("cost_tail", "cost_tail_hours", "What replacing a drive costs, in seconds of tail hours."),
    ):
        rows = [{**row, "seconds": row[column] * HOUR.total_seconds()} for row in candidates[:MAX_SERIES]]
        yield _series(f"candidate_{name}_seconds", help_, labels, "seconds", rows)
