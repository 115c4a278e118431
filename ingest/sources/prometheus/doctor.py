"""Metrics of drives that a Prometheus server has and lacks, found in a few dozen small queries before the first pull."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property

import polars as pl

from ingest.contract.findings import (
    MISSING,
    OK,
    WEAK,
    Finding,
    Inventory,
    by_host,
    count_of,
    group_findings,
    hidden_finding,
    kind_finding,
    some_of,
)
from ingest.reading.devices import drive_of, is_hidden_path, is_placeholder
from ingest.sources.prometheus.client import Client, PrometheusError, TooMuch
from ingest.sources.prometheus.dialects import COLLECTOR, COLUMNS, LOOKED_FOR, TODAY, not_read, recognised, way_of
from ingest.sources.prometheus.paths import contradictions, naming_of
from ingest.sources.prometheus.pull import LOOKBACK_SECONDS, READS, Selection, quoted
from ingest.sources.prometheus.readings import COUNTERS, NEEDED, READING, named_hosts
from ingest.sources.prometheus.text import INFO, MEMBER, located_by, named_by_watcher

PROBES = 24
"""Hours that one question about the history looks at."""
DOUBLINGS = 9
"""The last day is asked for, the day before, the two before those, ..., the 256 before those."""
REACH_SECONDS = 60
"""Time after which the beginning of the samples is no longer looked for."""


def diagnose(
    url: str,
    selection: Selection,
    least_drives: int,
    now: datetime | None = None,
    inventory: Inventory | None = None,
    controllers: str = "",
    replace_days: int = 0,
    chronic_days: int = 0,
) -> list[Finding]:
    """Findings on a server, in the order in which they matter; the first that is missing may leave the rest unasked.

    inventory: what other sources have delivered on its drives. controllers: regular expression of the models, in lower case, of logical
    drives of RAID controllers. replace_days: days with slow hours that a verdict of replace needs. chronic_days: the days that decide
    whether a drive is chronic.
    """
    now = now or datetime.now(UTC).replace(tzinfo=None)
    try:
        client = Client(url, is_partial_allowed=True, is_patient=False)
        doctor = _Doctor(client, selection, now, inventory or Inventory())
        client.ask("query", {"query": "vector(1)", "time": doctor.now})
    except PrometheusError as error:
        return [Finding("server", MISSING, str(error))]
    found = [Finding("server", OK, f"{client.url} answers")]
    try:
        found += doctor.transport()
        counters = doctor.counters()
        found += counters
        if any(finding.state == MISSING for finding in counters):
            return found
        found += doctor.hosts()
        if any(finding.state == MISSING for finding in found):
            return found
        found += [*doctor.silent(), *doctor.interval(), *doctor.reach(replace_days, chronic_days)]
        found += [*doctor.serials(), *doctor.groups(least_drives), *doctor.kinds(), *doctor.hidden(controllers)]
    except PrometheusError as error:
        found.append(Finding("answers", MISSING, str(error)))
    if client.warnings:
        said = f"the server calls its answers incomplete: {some_of(sorted(client.warnings), 1)}"
        found.append(Finding("answers", WEAK, said, "a pull stops there; repair the server, or accept them with --allow-partial"))
    return found


class _Doctor:
    def __init__(self, client: Client, selection: Selection, now: datetime, inventory: Inventory) -> None:
        self.client, self.selection, self.inventory = client, selection, inventory
        self.views = [selection]
        self.now = int(now.replace(tzinfo=UTC).timestamp())
        self.drives: list[dict[str, str]] = []
        self.infos: dict[tuple[str, str], str] = {}
        self.described: dict[tuple[str, str], dict[str, str]] = {}
        self.members: list[dict[str, str]] = []

    @property
    def places(self) -> list[tuple[str, str]]:
        """Host and device of each drive, as often as it is watched."""
        return [self.place(drive) for drive in self.drives]

    def place(self, labels: Mapping[str, str], device: str | None = None) -> tuple[str, str]:
        """Host and device that a series is about; the host is the target where no drive of it is known."""
        target = labels.get(self.selection.labels.host, "")
        return self.names.get(target, target), labels.get(self.selection.labels.device, "") if device is None else device

    @cached_property
    def names(self) -> dict[str, str]:
        """The hosts of the targets."""
        return named_by_watcher(self.drives, self.selection.labels.host)

    def vector(self, query: str, at: int | None = None) -> list[tuple[dict[str, str], float]]:
        """An instant query: (labels, value)."""
        data = self.client.ask("query", {"query": query, "time": self.now if at is None else at})
        try:
            return [({str(name): str(value) for name, value in one["metric"].items()}, float(one["value"][1])) for one in data["result"]]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise PrometheusError(f"{query}: no vector, the server answered with {str(data)[:80]!r}") from error

    def each(self, query: str, metrics: Iterable[str], at: int | None = None) -> list[tuple[dict[str, str], float]]:
        """The answers to an instant query of these metrics (its `%s`), of every dialect that is there, with node_exporter's labels."""
        wanted = list(metrics)
        return [(view.today(labels)[0], value) for view in self.views for labels, value in self.vector(query % view.of(wanted), at)]

    def transport(self) -> list[Finding]:
        if self.client.has_credentials and self.client.url.startswith("http://"):
            return [Finding("transport", WEAK, "credentials are sent without encryption", "use https:// if the server has it")]
        return []

    def counters(self) -> list[Finding]:
        found: list[Finding] = []
        whole = []
        for view in self.selection.views():
            by = ", ".join(filter(None, ("__name__", view.dialect.direction)))
            there = {
                view.dialect.column_of(labels.get("__name__", ""), labels): int(count)
                for labels, count in self.vector(f"count by ({by}) ({view.of(COUNTERS)})")
            }
            if there:
                found.append(self._counted(view, there))
                whole += [view] * (found[-1].state != MISSING)
        self.views = whole or self.views
        # what one collector lacks another may have
        return [replace(one, state=WEAK) if whole and one.state == MISSING else one for one in found] or [self._nothing()]

    def _counted(self, view: Selection, there: Mapping[str | None, int]) -> Finding:
        """Whether one collector has all counters: `there`, drives by column."""
        dialect = view.dialect
        whose = "" if dialect == TODAY else f" of {dialect.title}"
        lacks = {column: getattr(dialect, column) for column in COUNTERS.values() if not there.get(column)}
        shown = [f"{name} ({way_of(column)})" if dialect.direction else name for column, name in lacks.items()]
        if any(column in lacks for column in (COLUMNS if dialect.block_bytes else NEEDED)):
            said = f"no {', '.join(shown)}{whose}; a latency needs I/Os and their time, reads and writes"
            return Finding("counters", MISSING, said, "check that nothing drops them (metric_relabel_configs, --match)")
        if lacks:
            todo = "sizes of I/Os will be unknown; check that nothing drops them (metric_relabel_configs)"
            return Finding("counters", WEAK, f"no {', '.join(shown)}{whose}", todo)
        return Finding("counters", OK, f"all {len(COUNTERS)} counters{whose}, of {there['reads']} drives")

    def _nothing(self) -> Finding:
        anywhere = self.vector(f"topk(1, {READS})")
        if anywhere:
            labels = anywhere[0][0]
            said = (
                f"no counter of a whole drive under the label {self.selection.labels.device!r}; {READS} has the labels {json.dumps(labels)}"
            )
            return Finding("counters", MISSING, said, "name the label of the device with --device-label, or loosen --match")
        self.views = self.selection.views()
        if self.hours_back()[0] is not None:
            todo = "are the exporters down? `up == 0` lists targets that do not answer; what is there can be pulled: --from, --until"
            return Finding("counters", MISSING, f"no {READS} now, but of hours before: nothing is scraped any more", todo)
        others = self.vector(f"count by (__name__) ({{__name__=~{quoted(recognised())}}})")
        said = "; ".join([f"no {READS}, nor what {LOOKED_FOR} call it", *not_read(labels.get("__name__", "") for labels, _ in others)])
        todo = "run node_exporter (its diskstats collector is on by default) and scrape it; see --match"
        return Finding("counters", MISSING, said, todo)

    def hosts(self) -> list[Finding]:
        read = [labels for labels, _ in self.each("%s", [READS])]
        self.drives = [labels for labels in read if not is_hidden_path(labels.get(self.selection.labels.device, ""))]
        name = self.selection.labels.host
        unnamed = sum(not labels.get(name) for labels in self.drives)
        if unnamed:
            known = sorted({label for labels in self.drives for label in labels} - {"__name__", self.selection.labels.device})
            todo = f"name the label of the host with --host-label; there are {', '.join(known)}"
            return [Finding("hosts", MISSING, f"{unnamed} of {len(self.drives)} drives have no label {name!r}", todo)]
        places, host_count = set(self.places), count_of(len(set(self.names.values())), "host")
        by = some_of(list(dict.fromkeys(view.target or name for view in self.views)))
        found = [Finding("hosts", OK, f"{count_of(len(places), 'drive')} on {host_count}, by the label {by!r}")]
        if again := len(self.drives) - len(places):
            said = f"{again} drives are watched more than once, by several collectors, jobs or replicas"
            found.append(Finding("hosts", OK, f"{said}; each time counts once"))
            found += self.apart()
        return found

    def apart(self) -> list[Finding]:
        """Series of one host and device that cannot be of one drive, by what they counted in the last hour."""
        labels = self.selection.labels
        rows: dict[tuple[str, str | None, str, int], dict[str, float]] = {}
        for at in (self.now - 3600, self.now):
            for given, value in self.each("%s", COUNTERS, at):
                target = given.get(labels.host, "")
                _, host, device, path, _ = located_by("", given, self.names | {target: self.names.get(target, target)}, labels, target)
                rows.setdefault((host, device, path, at), {})[COUNTERS.get(given.get("__name__", ""), "")] = value
        made = [
            {"host": host, "device": device, "path": path, "at": datetime.fromtimestamp(at, UTC).replace(tzinfo=None), **counters}
            for (host, device, path, at), counters in rows.items()
        ]
        _, notes = naming_of([contradictions(pl.DataFrame(made, schema=READING))], {}, [])
        todo = "a pull tells them apart so; to name them otherwise give --host-label, or take one at a time with --match"
        return [Finding("apart", WEAK, note, todo) for note in notes]

    def silent(self) -> list[Finding]:
        """Hosts that had drives a day ago and have none now."""
        name, device = self.selection.labels.host, self.selection.labels.device
        before = self.each("%s", [READS], self.now - 86_400)
        seen = {"", *self.names}
        gone = [host for there, _ in before if (host := there.get(name, "")) not in seen and not is_hidden_path(there.get(device, ""))]
        if not gone:
            return []
        names = named_hosts(sorted(set(gone)))
        said = f"{count_of(len(gone), 'drive')} of a day ago that no host reports now ({by_host([names[host] for host in gone])})"
        todo = "are these hosts off, or has the server lost them? `up == 0` lists targets that do not answer"
        return [Finding("silent", WEAK, said, todo)]

    def interval(self) -> list[Finding]:
        counts = [int(value) for _, value in self.each("count_over_time(%s[3599s])", [READS])]
        most = max(counts, default=0)
        if most < 2:
            said = "drives were scraped less than twice in the last hour"
            return [Finding("scrapes", MISSING, said, "is the scrape interval above half an hour, or was the server just started?")]
        seconds = 3600 / most
        if seconds > LOOKBACK_SECONDS:
            said = f"a scrape every {seconds:.0f} s; hours rarely begin and end with a scrape, so they have less coverage"
            return [Finding("scrapes", WEAK, said, "scrape once a minute; 5 minutes at most")]
        few = sum(count < most / 2 for count in counts)
        if few:
            said = f"a scrape every {seconds:.0f} s, but {few} of {len(counts)} drives had less than half of them in the last hour"
            return [Finding("scrapes", WEAK, said, "hours with gaps have less coverage; below --min-coverage they are not compared")]
        slowest = 3600 / max(min(counts), 1)
        span = f"{seconds:.0f} s" if slowest < 1.5 * seconds else f"{seconds:.0f} to {slowest:.0f} s"
        return [Finding("scrapes", OK, f"a scrape every {span} in the last hour")]

    def reach(self, replace_days: int, chronic_days: int) -> list[Finding]:
        hours, is_least = self.hours_back()
        if hours is None:
            return [Finding("history", WEAK, "no counters of a full hour", "pull once there are, then every hour")]
        first = datetime.fromtimestamp((self.now // 3600 - hours) * 3600, UTC).replace(tzinfo=None)
        days = hours // 24
        span = count_of(days, "day") if days else count_of(hours, "hour")
        said = f"counters go back {span}{' at least' if is_least else ''}, to {first:%Y-%m-%d %H}:00 UTC"
        if days >= chronic_days:
            return [Finding("history", OK, said, first_hour_utc=first)]
        needs = [f"a drive is called chronic over {chronic_days} days"]
        if days < replace_days:
            needs.append(f"a verdict of replace needs slow hours on {replace_days} days, or nearly all hours of three")
        todo = "pull all of it, then every hour, before the server deletes it (--storage.tsdb.retention.time)"
        return [Finding("history", WEAK, "; ".join([said, *needs]), todo, first)]

    def hours_back(self) -> tuple[int | None, bool]:
        """How many hours counters go back, and whether there may be more. Ever longer spans are asked, for there may be gaps, then the
        oldest ever finer.
        """
        until = time.monotonic() + REACH_SECONDS
        known, step, is_least = None, 1, False
        try:
            for doubling in range(DOUBLINGS + 1):
                newest, oldest = (PROBES << doubling) // 2 if doubling else 1, PROBES << doubling
                width = max(1, newest // PROBES)
                if time.monotonic() > until:
                    return known, True
                if (found := self.oldest_of(oldest, newest, width)) is not None:
                    known, is_least = found, oldest == PROBES << DOUBLINGS and found == oldest
                    step = width if found < oldest else oldest // PROBES
            while known is not None and step > 1 and not is_least:
                if time.monotonic() > until:
                    return known, True
                oldest, step = known + step, -(-step // PROBES)
                known = self.oldest_of(oldest, known, step) or known
        except TooMuch:
            is_least = True
        return known, is_least

    def oldest_of(self, oldest: int, newest: int, step: int) -> int | None:
        """The oldest hour with counters, of every `step`-th from `oldest` hours back on."""
        # asked a second before the hour ends: a scrape at a full hour is of the next
        start, end = ((self.now // 3600 - hours + 1) * 3600 - 1 for hours in (oldest, newest))
        queries = [f"count(count_over_time({view.of([READS])}[3599s]))" for view in self.views]
        points = [int(at) for query in queries for one in self.client.query_range(query, start, end, step * 3600) for at, _ in one.points]
        return oldest - (min(points) - start) // 3600 if points else None

    def serials(self) -> list[Finding]:
        infos = [drive for drive in self.drives if COLLECTOR in drive] + [labels for labels, _ in self.vector(self.selection.of([INFO]))]
        self.described = {self.place(labels): labels for labels in infos}
        self.members = [labels for labels, _ in self.vector(f"{{__name__={quoted(MEMBER)}}}")]
        self.infos = {self.place(labels, drive_of(labels.get("device", ""))): labels.get("serial", "") for labels in self.members}
        of_infos = ((self.place(labels), labels.get("serial")) for labels in infos)
        self.infos |= {place: serial for place, serial in of_infos if serial and not is_placeholder(serial)}
        places, landed = set(self.places), self.inventory.serials
        known = [serial for place in places if (serial := self.infos.get(place) or landed.get("/".join(place)))]
        shared = sorted({serial for serial in known if known.count(serial) > 1})
        found = []
        if len(known) < len(places):
            said = f"{len(places) - len(known)} of {len(places)} drives have no serial number in {INFO}; they are called HOST/DEVICE"
            todo = "node_exporter 1.4 or newer on a host with udev gives it; otherwise ingest smartctl, or give a mapping (`drivetail map`)"
            found.append(Finding("serials", WEAK, said, todo))
        if shared:
            said = f"serials shared by several devices at once, so not used: {some_of(shared)}"
            found.append(Finding("serials", WEAK, said, "virtual machines, or several paths to one drive; leave these out with --match"))
        return found or [Finding("serials", OK, f"all {len(places)} drives have a serial number")]

    def hidden(self, controllers: str) -> list[Finding]:
        devices: dict[str, list[str]] = {}
        for (host, device), labels in self.described.items():
            if controllers and re.search(controllers, labels.get("model", "").lower()):
                devices.setdefault(host, []).append(device)
        return hidden_finding(devices)

    def kinds(self) -> list[Finding]:
        places = set(self.places)
        unknown = [
            place[0]
            for place in places
            if self.described.get(place, {}).get("rotational") not in ("0", "1")
            and not self.inventory.has_kind("/".join(place))
            and not self.inventory.has_kind(self.infos.get(place) or "")
        ]
        return kind_finding(len(unknown), len(places), unknown)

    def groups(self, least_drives: int) -> list[Finding]:
        labels, names = self.selection.labels, self.names
        members = {self.place(one, drive_of(one.get("device", ""))): one.get("uuid") or one.get("md", "") for one in self.members}
        # an array by its host and its name there: nobody knows it by its UUID
        called = {
            one["uuid"]: f"{names.get(one.get(labels.host, ''), '')} {one['md']}".strip()
            for one in self.members
            if one.get("uuid") and one.get("md")
        }
        groups: dict[str, set[tuple[str, str]]] = {}
        guessed = 0
        for drive, place in zip(self.drives, self.places, strict=True):
            group = labels.group_of(drive) or members.get(place)
            group = self.inventory.group_of(self.infos.get(place), "/".join(place), named=group)
            guessed += group is None
            groups.setdefault(place[0] if group is None else group, set()).add(place)
        return group_findings({called.get(group, group): len(drives) for group, drives in groups.items()}, guessed, least_drives)
