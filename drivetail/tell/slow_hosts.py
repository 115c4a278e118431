"""Which hosts have a drive with an open alert, for `drivetail collect --finer` (docs/sources/collect.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from drivetail.service.settings import Collect
from drivetail.service.slow_hosts import SlowHosts
from drivetail.tell.alerts import open_alerts
from engine.warehouse import Warehouse
from ingest.raw.durable import replace_file


def write_slow_hosts(warehouse: Warehouse, collect: Collect, file: Path) -> SlowHosts:
    """Write the hosts that have to look more often, and how often, in one step.

    Dismissed drives do not count; drives that an alert of their host stands for do.
    Raises: QueryError when there is no publication or it cannot be read.
    """
    hosts: dict[str, datetime] = {}
    for alert in open_alerts(warehouse, with_all=True):
        if alert.host is not None and alert.dismissed_by is None:
            hosts[alert.host] = max(alert.since.replace(tzinfo=UTC), hosts.get(alert.host, datetime.min.replace(tzinfo=UTC)))
    found = SlowHosts(every_seconds=collect.finer_seconds, hours=collect.finer_hours, megabytes=collect.finer_megabytes, hosts=hosts)
    replace_file(file, found.model_dump_json(indent=2) + "\n")
    return found
