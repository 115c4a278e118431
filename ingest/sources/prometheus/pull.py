"""A range of hours from a server -> readings: two scrapes an hour where those are enough, every scrape where they are not.

The counters at the start and the end of an hour give its increments exactly, unless a counter was reset in between. So a
range is queried at its full hours only (`query_range`, step 1 h, with `timestamp()` for when the scrape really was): a
few numbers per drive and hour, at any scrape interval. Only the hours that need it are read scrape by scrape (a
range selector, which gives the stored samples as they are): those in which a counter was reset, the drive was replaced, or
no scrape is near enough to a full hour. `increase()` is not used: it extrapolates. Where samples within an hour are kept
the step is such a part, and all else the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import polars as pl

from ingest.reading.devices import HIDDEN_PATH, VIRTUAL_PARTITION, WHOLE_DRIVE, host_of, kernel_name, without_whole_disk
from ingest.reading.histograms import BUCKET
from ingest.sources.mdadm import IDLE_STATES
from ingest.sources.prometheus.arrays import ARRAY, STATE, arrays_of
from ingest.sources.prometheus.client import Client, PrometheusError, Series, TooMuch
from ingest.sources.prometheus.dialects import DIALECTS, TODAY, Dialect, way_of
from ingest.sources.prometheus.health import METRICS as HEALTH
from ingest.sources.prometheus.health import Point
from ingest.sources.prometheus.readings import COUNTERS, LOOKBACK_US, READING, named_hosts, until_reset
from ingest.sources.prometheus.text import (
    INFO,
    MEMBER,
    TELLS,
    Labels,
    identities,
    located_by,
    memberships,
    path_of_counters,
    with_identity,
)

HOUR = 3600
HISTOGRAM = "ebpf_exporter_bio_latency_seconds_bucket"
LOOKBACK_SECONDS = LOOKBACK_US // 1_000_000
CHUNK_HOURS = 24
HOSTS_AT_ONCE = 50
ARRAY_SECONDS = 300
"""How often the states of arrays are asked for."""
READS = next(iter(COUNTERS))

_PLACE: dict[str, pl.DataType] = {"host": pl.String(), "device": pl.String(), "path": pl.String()}
_POINT: dict[str, pl.DataType] = {
    "metric": pl.String(),
    **_PLACE,
    "labelled_group": pl.String(),
    "target": pl.String(),
    "labels": pl.String(),
    "seconds": pl.Float64(),
    "value": pl.String(),
}


@dataclass(frozen=True)
class Selection:
    """Selection from a server: label matchers as in PromQL (`job="node"`), which labels say where a drive is, and whose names are asked
    for. `target`: the label of these that names the host.
    """

    match: tuple[str, ...] = ()
    labels: Labels = field(default_factory=Labels)
    dialect: Dialect = TODAY
    target: str = ""

    def of(self, metrics: Collection[str], *more: str) -> str:
        """A selector of these metrics (names of node_exporter's), of whole drives and paths to them; the members of an array may be
        partitions.
        """
        columns = [COUNTERS[metric] for metric in metrics if metric in COUNTERS]
        asked = [self.dialect.names(columns)] if columns else []
        asked += [metric for metric in metrics if metric not in COUNTERS]
        names = f"{WHOLE_DRIVE}(p?[0-9]+)?" if MEMBER in metrics else f"{WHOLE_DRIVE}|{HIDDEN_PATH}|{VIRTUAL_PARTITION}"
        devices = self.dialect.devices(self.labels.device)
        drives = [
            f"{device}=~{quoted(self.dialect.drives or f'(/dev/)?({names})')}" if len(devices) == 1 else f'{device}!=""'
            for device in devices
        ]
        if self.dialect.direction:
            drives.append(f"{self.dialect.direction}=~{quoted('|'.join(sorted(set(map(way_of, columns)))))}")
        return "{" + ",".join((f"__name__=~{quoted('|'.join(asked))}", *drives, *self.match, *more)) + "}"

    def views(self) -> list[Selection]:
        """The same of every dialect, for each label that may name the host: a series is in one of them."""
        found = []
        for dialect in DIALECTS:
            hosts = dialect.hosts(self.labels.host)
            for number, host in enumerate(hosts):
                apart = [f'{other}=""' for other in hosts[:number]] + [f'{host}!=""'] * (host != hosts[-1])
                found.append(replace(self, match=(*self.match, *apart), dialect=dialect, target=host))
        return found

    def today(self, labels: Mapping[str, str]) -> tuple[dict[str, str], float]:
        """Labels of an answer as node_exporter gives them, and how many of its units are one."""
        given = self.dialect.labels_of_today(labels, self.labels.host, self.labels.device)
        metric = labels.get("__name__", "")
        column = self.dialect.column_of(metric, labels)
        return given | ({"__name__": getattr(TODAY, column)} if column else {}), self.dialect.per(column, metric)

    def of_today(self, series: Iterable[Series]) -> list[Series]:
        """Series of an answer as node_exporter has them."""
        found = []
        for one in series:
            labels, per = self.today(one.labels)
            points = one.points
            with suppress(ValueError):  # what is no number stays as it is, and is refused as such
                points = points if per == 1 else [(at, repr(float(value) / per)) for at, value in points]
            found.append(Series(labels, points))
        return found


def quoted(text: str) -> str:
    """A string of PromQL."""
    return json.dumps(text, ensure_ascii=False)


def chunks(first: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """[first, end) in pieces of no more than a UTC day."""
    while first < end:
        midnight = first.replace(hour=0) + timedelta(hours=CHUNK_HOURS)
        yield first, min(midnight, end)
        first = midnight


def pull(client: Client, selection: Selection, first: datetime, end: datetime, step: int = HOUR) -> pl.DataFrame:
    """The readings (READING) behind the full hours [first, end), UTC, in order of drive and time.

    step: length of a sample in seconds, a part of an hour.
    Halves the range where it is too much for the server. Raises: PrometheusError.
    """
    try:
        return _of_all(client, selection, unix_of(first), unix_of(end), step)
    except TooMuch:
        hours = (end - first) // timedelta(hours=1)
        if hours <= 1:
            raise
        middle = first + timedelta(hours=hours // 2)
        parts = [pull(client, selection, *span, step) for span in ((first, middle), (middle, end))]
        return pl.concat(parts).unique([*_PLACE, "at"], keep="first").sort(*_PLACE, "at")


def pull_health(client: Client, selection: Selection, at: datetime) -> list[Point]:
    """The drives' health by the textfile collectors of every host at a full hour, UTC. Raises: PrometheusError."""
    selector = "{" + ",".join((f"__name__=~{quoted(HEALTH)}", *selection.match)) + "}"
    series = _each_once(client.query_range(selector, unix_of(at), unix_of(at), HOUR))
    hosts = named_hosts([one.labels.get(selection.labels.host, "") for one in series])
    return [
        (hosts[one.labels.get(selection.labels.host, "")], one.labels.get("__name__", ""), one.labels, at, number)
        for one in series
        for number in pl.Series([value for _, value in one.points], dtype=pl.String()).cast(pl.Float64(), strict=False).drop_nulls()
    ]


def pull_latencies(client: Client, selection: Selection, first: datetime, end: datetime) -> tuple[pl.DataFrame, int]:
    """Counts of ebpf_exporter at each full hour of [first, end], UTC, by how long I/Os took (BUCKET and `path`), of all operations; and the
    number of counts left out, where the count or its bucket is not a number. Raises: PrometheusError.
    """
    series = _each_once(client.query_range(selection.of([HISTOGRAM]), unix_of(first), unix_of(end), HOUR))
    hosts = _hosts(series, selection)
    rows: list[tuple[str | float, ...]] = []
    apart = ("__name__", "le", "operation", "ops", selection.labels.device)
    for one in series:
        path = json.dumps({name: value for name, value in one.labels.items() if name not in apart}, sort_keys=True)
        host, device = hosts[one.labels.get(selection.labels.host, "")], kernel_name(one.labels.get(selection.labels.device, ""))
        # reads and writes are separate histograms, and releases name the label that separates them differently
        histogram = json.dumps({name: value for name, value in one.labels.items() if name != "le"}, sort_keys=True)
        rows += [(host, device, path, histogram, at, one.labels.get("le", ""), value) for at, value in one.points]
    names = ("host", "device", "path", "histogram", "at", "le", "value")
    points = pl.DataFrame(rows, schema={name: pl.Float64() if name == "at" else pl.String() for name in names}, orient="row")
    bound = pl.col("le").str.replace("+Inf", "inf", literal=True).cast(pl.Float64, strict=False)
    given = points.height
    points = points.with_columns(bound, pl.col("value").cast(pl.Float64, strict=False)).drop_nulls()
    points = points.filter(pl.col("value").is_finite(), pl.col("le").is_not_nan())
    place = ["histogram", "at"]
    points = points.sort(*place, "le").with_columns(
        # each bucket holds those below it, too
        (pl.col("value") - pl.col("value").shift(1).over(place).fill_null(0.0)).alias("count"),
        pl.when(pl.col("le").is_finite()).then("le").otherwise(pl.col("le").shift(1).over(place) * 2).alias("upper"),
    )
    whole = points.drop_nulls("upper").with_columns((pl.col("upper") * 1e6).round(3).alias("upper_us"))
    counts = whole.group_by(*_PLACE, "at", "upper_us", maintain_order=True).agg(pl.col("count").sum().round().cast(pl.Int64))
    numbered = counts.with_columns(pl.lit(0, pl.Int64()).alias("file_no"), pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias("row_no"))
    return numbered.select(*BUCKET, "path"), given - points.height


def pull_arrays(client: Client, selection: Selection, first: datetime, end: datetime, hosts: Collection[str]) -> pl.DataFrame:
    """States of arrays from `first` to `end`, UTC, every ARRAY_SECONDS, and their drives every hour (ARRAY).

    Only of those hosts where an array does more than its work. Raises: PrometheusError.
    """
    start, stop = unix_of(first), unix_of(end)
    states = (f"__name__={quoted(STATE)}", f"state!~{quoted('|'.join(IDLE_STATES))}", *selection.match)
    window = stop - start + LOOKBACK_SECONDS
    worked = client.query_range(f"max_over_time({{{','.join(states)}}}[{window}s]) > 0", start, stop, stop - start)
    targets = sorted({one.labels.get(selection.labels.host, "") for one in worked})
    names = {target: host for target in targets if (host := target if target in hosts else host_of(target)) in hosts}
    found = [pl.DataFrame(schema=ARRAY)]
    for at in range(0, len(targets), HOSTS_AT_ONCE):
        where = f"{selection.labels.host}=~{quoted('|'.join(map(re.escape, targets[at : at + HOSTS_AT_ONCE])))}"
        asked = ((f"{{{','.join((*states, where))}}}", ARRAY_SECONDS), (selection.of([MEMBER], where), HOUR))
        said, members = (
            _points(_each_once(client.query_range(query, start, stop, step)), names, selection.labels).with_columns(
                _at(), pl.col("value").cast(pl.Float64, strict=False).alias("number")
            )
            for query, step in asked
        )
        found.append(arrays_of(said, memberships(members, {text: json.loads(text) for text in members["labels"].unique()})))
    return pl.concat(found)


def unix_of(hour: datetime) -> int:
    """An hour, UTC, in unix seconds."""
    return int(hour.replace(tzinfo=UTC).timestamp())


def _of_all(client: Client, selection: Selection, start: int, end: int, step: int) -> pl.DataFrame:
    """The readings of all dialects; those that are not node_exporter's of today are asked for where there are any."""
    views = selection.views()
    reads = "|".join(dict.fromkeys(view.dialect.reads for view in views if view.dialect != TODAY))
    others = "{" + ",".join((f"__name__=~{quoted(reads)}", *selection.match)) + "}"
    if not client.query_range(f"count(count_over_time({others}[{HOUR}s]))", start, end, HOUR):
        views = [view for view in views if view.dialect == TODAY]
    return pl.concat([_pull(client, view, start, end, step) for view in views]).sort(*_PLACE, "at")


def _pull(client: Client, selection: Selection, start: int, end: int, step: int) -> pl.DataFrame:
    window = LOOKBACK_SECONDS + step

    def at_steps(query: str) -> list[Series]:
        return selection.of_today(_each_once(client.query_range(query, start, end, step)))

    scrapes = at_steps(f"count_over_time({selection.of([READS])}[{step}s])")
    if not scrapes:
        return pl.DataFrame(schema=READING)
    counters, is_described = at_steps(selection.of(COUNTERS)), selection.dialect.collector == TODAY.collector
    answers = {
        "counters": counters,
        "taken": at_steps(f"timestamp({selection.of([READS])})"),
        "scrapes": scrapes,
        "resets": [one for metric in COUNTERS for one in at_steps(f"resets({selection.of([metric])}[{window}s]) > 0")],
        "info": at_steps(selection.of([INFO])) if is_described else counters,
        "member": at_steps(selection.of([MEMBER])) if is_described else [],
    }
    hosts = _hosts(answers["scrapes"], selection)
    listed: dict[str, list[str]] = {}
    for target, device in (_place(one, selection) for one in answers["scrapes"]):
        listed.setdefault(target, []).append(device)
    partitions = {
        (target, name) for target, names in listed.items() for name in {*names} - without_whole_disk(names) if _is_partition(name)
    }
    answers = {what: [one for one in series if _place(one, selection) not in partitions] for what, series in answers.items()}
    points = {what: _points(series, hosts, selection.labels) for what, series in answers.items()}
    points["info"] = points["info"].filter(TELLS)
    infos, members = _described(points["info"], points["member"])
    at_step = _at_steps(points["counters"], points["taken"])
    named = with_identity(at_step, infos, members)
    for doubtful, place in _doubtful(points["info"], named):
        named, at_step = (some.join(doubtful, on=[*place, "seconds"], how="anti") for some in (named, at_step))
        infos = infos.join(doubtful.with_columns(_at()), on=[*place, "at"], how="anti")
    clear = _clear(points["scrapes"], points["resets"], named, step)
    if selection.dialect.block_bytes:  # each scrape says how it was since the one before
        clear = clear.clear()
    unclear = _unclear(points["scrapes"], clear, start)
    at_step = at_step.join(clear.with_columns(is_clear=True), on=[*_PLACE, "seconds"], how="left", maintain_order="left")
    found = [(at_step, infos, members)]
    for ends, drives in unclear.partition_by("seconds", as_dict=True).items():
        found += _every_scrape(client, selection, int(ends[0]), step, drives, hosts)
    readings, infos, members = (pl.concat(frames, how="diagonal") for frames in zip(*found, strict=True))
    readings = readings.unique([*_PLACE, "scraped_at"], keep="first")
    # at once, as a scrape between two steps may show that another drive came
    said = (until_reset(each.unique([*_PLACE, "at"], keep="first"), readings) for each in (infos, members))
    readings = with_identity(readings, *said).with_columns(
        pl.col("scraped_at").alias("at"), pl.col("is_clear").fill_null(False).alias("is_whole")
    )
    # of what is before the range only the reading that its first increment begins with
    return _since(readings.select(*READING), start)


def _since(readings: pl.DataFrame, unix: int) -> pl.DataFrame:
    """The readings after an instant, and the last of each path up to it."""
    begin = datetime.fromtimestamp(unix, UTC).replace(tzinfo=None)
    return readings.sort(*_PLACE, "at").filter((pl.col("at") > begin) | (pl.col("at").shift(-1).over(*_PLACE) > begin).fill_null(True))


def _hosts(series: list[Series], selection: Selection) -> dict[str, str]:
    """Scrape target -> host (`named_hosts`), of series at steps: a target may have its first sample after another's last in one step."""
    times: dict[str, list[float]] = {}
    for one in series:
        times.setdefault(_place(one, selection)[0], []).extend(float(at) for at, _ in (one.points[0], one.points[-1]))
    return named_hosts(times, {target: (min(found), max(found)) for target, found in times.items()})


def _is_partition(device: str) -> bool:
    return re.fullmatch(VIRTUAL_PARTITION, device) is not None


def _place(one: Series, selection: Selection) -> tuple[str, str]:
    return one.labels.get(selection.labels.host, ""), one.labels.get(selection.labels.device, "")


def _each_once(series: list[Series]) -> list[Series]:
    """The series of one answer. Raises: PrometheusError where two have the same labels: a counter that has two values has none."""
    seen: set[frozenset[tuple[str, str]]] = set()
    for one in series:
        labels = frozenset(one.labels.items())
        if labels in seen:
            raise PrometheusError(
                f"an answer has the series {json.dumps(one.labels, sort_keys=True)[:200]} twice, with no way to know which is right"
            )
        seen.add(labels)
    return series


def _points(series: Iterable[Series], hosts: dict[str, str], labels: Labels) -> pl.DataFrame:
    """Answers in long form: _POINT, a row per point."""
    about_rows: list[tuple[str | None, ...]] = []
    points: list[tuple[int, float, str]] = []
    for one in series:
        target = one.labels.get(labels.host, "")
        if target not in hosts:  # it says who a drive is, but the drive has no counters
            continue
        _, host, device, path, group = located_by("", one.labels, hosts, labels, target or "unknown")
        if device is None:
            raise PrometheusError(
                f"series of {one.labels.get('__name__', 'counters')} have no label {labels.device!r}; name theirs with --device-label"
            )
        points += ((len(about_rows), float(seconds), value) for seconds, value in one.points)
        about_rows.append((one.labels.get("__name__"), host, device, path, group, target, json.dumps(one.labels, sort_keys=True)))
    numbered = pl.DataFrame(points, schema={"series": pl.UInt32(), "seconds": pl.Float64(), "value": pl.String()}, orient="row")
    about = pl.DataFrame(about_rows, schema={name: kind for name, kind in _POINT.items() if name not in numbered.columns}, orient="row")
    return pl.concat([about[numbered["series"]], numbered], how="horizontal").select(*_POINT)


def _described(infos: pl.DataFrame, members: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    read = {text: json.loads(text) for text in pl.concat([infos["labels"], members["labels"]]).unique()}
    return identities(infos.with_columns(_at()), read), memberships(members.with_columns(_at()), read)


def _at(name: str = "seconds") -> pl.Expr:
    return pl.col(name).mul(1_000_000).round().cast(pl.Int64).cast(pl.Datetime("us")).alias("at")


def _pivoted(points: pl.DataFrame) -> pl.DataFrame:
    """Counters side by side: a row per drive, path and instant."""
    number = pl.col("value").cast(pl.Float64, strict=False)
    columns = (number.filter(pl.col("metric") == metric).first().alias(name) for metric, name in COUNTERS.items())
    return points.group_by(*_PLACE, "seconds").agg(*columns, pl.col("labelled_group").first())


def _at_steps(counters: pl.DataFrame, taken: pl.DataFrame) -> pl.DataFrame:
    """Counters at full steps: of the scrape at `scraped_at`, asked for `at` the full step (`seconds`), as is who the drive is."""
    scraped = taken.select(*_PLACE, "seconds", pl.col("value").cast(pl.Float64, strict=False).alias("scraped"))
    readings = _pivoted(counters).join(scraped, on=[*_PLACE, "seconds"])
    is_known = pl.all_horizontal(pl.col(name).is_null() | pl.col(name).is_finite() for name in COUNTERS.values())
    readings = readings.filter(is_known & (pl.col("seconds") - pl.col("scraped")).is_between(0, LOOKBACK_SECONDS, closed="left"))
    return readings.with_columns(_at(), _at("scraped").alias("scraped_at")).drop("scraped")


def _doubtful(infos: pl.DataFrame, at_step: pl.DataFrame) -> list[tuple[pl.DataFrame, list[str]]]:
    """Full steps at which a server without marks of staleness still names the drive that was in a place and already the one that is; and
    the columns of the place: with the path, where counters have it.
    """
    paths = {path: path_of_counters(path) for path in infos["path"].unique()}
    serial = pl.col("labels").str.json_path_match("$.serial")
    serials = infos.with_columns(pl.col("path").replace_strict(paths, return_dtype=pl.String()), serial.alias("serial"))
    several = serials.group_by(*_PLACE, "seconds").agg(pl.col("serial").n_unique()).filter(pl.col("serial") > 1)
    of_paths = several.join(at_step, on=list(_PLACE), how="semi")
    return [(of_paths, list(_PLACE)), (several.join(of_paths, on=list(_PLACE), how="anti"), ["host", "device"])]


def _clear(scrapes: pl.DataFrame, resets: pl.DataFrame, at_step: pl.DataFrame, step: int) -> pl.DataFrame:
    """The steps (path and `seconds`, the end) of which the readings at both ends say all: no reset, one drive, no gap of scrapes."""
    count = pl.col("value").cast(pl.Float64, strict=False)
    full = scrapes.filter(count > count.max().over(list(_PLACE)) - 2).select(*_PLACE, "seconds")
    ends = at_step.select(*_PLACE, "seconds", "serial", "wwn")
    both = ends.join(ends.with_columns(pl.col("seconds") + step), on=[*_PLACE, "seconds"])
    is_one = pl.col("serial").eq_missing(pl.col("serial_right")) & (pl.col("wwn") == pl.col("wwn_right")).fill_null(True)
    clear = both.filter(is_one).join(full, on=[*_PLACE, "seconds"], how="semi")
    return clear.join(resets, on=[*_PLACE, "seconds"], how="anti").select(*_PLACE, "seconds")


def _unclear(scrapes: pl.DataFrame, clear: pl.DataFrame, start: int) -> pl.DataFrame:
    """The steps to be read scrape by scrape: drive, path, target, and `seconds`, the end of the step."""
    seen = scrapes.filter(pl.col("seconds") > start).select(*_PLACE, "target", "seconds")
    return seen.join(clear, on=[*_PLACE, "seconds"], how="anti").sort("seconds", *_PLACE)


def _every_scrape(
    client: Client, selection: Selection, end: int, step: int, drives: pl.DataFrame, hosts: dict[str, str]
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]]:
    """Every count of some drives in the step that ends at `end`, and the last one in the minutes before it; and who they were."""
    window = LOOKBACK_SECONDS + step
    targets = drives["target"].unique().sort().to_list()
    for at in range(0, len(targets), HOSTS_AT_ONCE):
        these = "|".join(re.escape(target) for target in targets[at : at + HOSTS_AT_ONCE])
        where = f"{selection.target or selection.labels.host}=~{quoted(these)}"
        asked = ((*COUNTERS, INFO), (MEMBER,)) if selection.dialect.collector == TODAY.collector else (tuple(COUNTERS),)
        series = [one for metrics in asked for one in _each_once(client.query(f"{selection.of(metrics, where)}[{window}s]", end, window))]
        points = _points(selection.of_today(series), hosts, selection.labels)
        infos, members = _described(points.filter(TELLS), points.filter(metric=MEMBER))
        counters = points.filter(pl.col("metric").is_in(list(COUNTERS))).join(drives, on=list(_PLACE), how="semi")
        yield _since(_pivoted(counters).with_columns(_at(), _at().alias("scraped_at")), end - step), infos, members
