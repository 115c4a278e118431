"""Several series of one device: one measurement taken twice, parts that follow each other, or machines that go by one name.

Scrape jobs, replicas and pods that watch a drive see the same counters. Where they do not, labels have to tell the machines apart.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from ingest.contract.findings import some_of
from ingest.reading.devices import host_of
from ingest.sources.prometheus.dialects import COLLECTOR, TODAY
from ingest.sources.prometheus.readings import DRIVE, IDENTITY, NEEDED, RATED, until_reset

ALIKE = 0.1
"""Counters of one drive that two watchers read differ by no more than this part of what it did meanwhile, or by less than these."""
FEW_IOS, FEW_SECONDS = 100, 0.5
# labels that say where a machine is, before others; those that every scrape of one machine may have otherwise, last
_OF_PLACE = ("cluster", "site", "region", "dc", "datacenter", "zone", "environment", "env", "namespace")
_OF_SCRAPE = ("job", "service", "endpoint", "container", "prometheus", "prometheus_replica", "replica", "receive", "pod", "instance")

Naming = dict[str, tuple[str, ...]]
"""Host -> the labels whose values become part of its name."""
CONTRADICTION: dict[str, pl.DataType] = {
    **DRIVE,
    "path_right": pl.String(),
    "said": pl.String(),
}


def contradictions(readings: pl.DataFrame) -> pl.DataFrame:
    """Pairs of paths to one device whose readings, over the time that both were read, cannot be of one drive (CONTRADICTION).

    They can where the I/Os and the time spent on them follow one count, or grew alike, or there were few; and neither has another serial.
    """
    place = ["host", "device"]
    several = readings.select(*DRIVE).unique().filter(~pl.col("path").str.contains(RATED)).filter(pl.len().over(place) > 1)
    if not several.height:
        return pl.DataFrame(schema=CONTRADICTION)
    is_known = pl.all_horizontal(pl.col(name).is_finite().fill_null(False) for name in NEEDED)
    seen = readings.join(several, on=list(DRIVE), how="semi").filter(is_known).select(
        *DRIVE, "at", (pl.col("reads") + pl.col("writes")).alias("ios"), (pl.col("read_seconds") + pl.col("write_seconds")).alias("busy"),
        "serial", "wwn",
    )  # fmt: skip
    watched = seen.group_by(*DRIVE).agg(pl.col("at").min().alias("first"), pl.col("at").max().alias("last"))
    pairs = (
        watched.join(watched, on=place)
        .filter(pl.col("path") < pl.col("path_right"))
        .with_columns(pl.max_horizontal("first", "first_right").alias("begins"), pl.min_horizontal("last", "last_right").alias("ends"))
        .filter(pl.col("begins") < pl.col("ends"))
        .sort(*place, "path", "path_right")
        .with_row_index("pair")
    )
    sides = [pairs.select("pair", *place, pl.col(name).alias("path"), "begins", "ends", side=pl.lit(n)) for n, name in enumerate(_PATHS)]
    both = pl.concat(sides).join(seen, on=list(DRIVE)).filter(pl.col("at").is_between("begins", "ends"))
    own = both.sort("pair", "side", "at").with_columns(pl.col(name).diff().over("pair", "side").alias(f"{name}_more") for name in _COUNTED)
    sums = own.group_by("pair", "side").agg(
        *(pl.col(f"{name}_more").clip(lower_bound=0).sum().alias(name) for name in _COUNTED),
        pl.any_horizontal(pl.col(f"{name}_more") < 0 for name in _COUNTED).sum().alias("falls"),
        pl.col("at").min().alias("from"),
        pl.col("at").max().alias("until"),
        ((pl.col("at").max() - pl.col("at").min()).dt.total_microseconds() / 1e6).alias("seconds"),
        *(pl.col(name).drop_nulls().unique().sort() for name in ("serial", "wwn")),
    )
    found = pairs.join(sums.filter(side=0).drop("side"), on="pair").join(sums.filter(side=1).drop("side"), on="pair", suffix="_other")
    slack = {name: pl.max_horizontal(name, f"{name}_other") * ALIKE + few for name, few in _COUNTED.items()}
    found = found.with_columns(slack[name].alias(f"{name}_slack") for name in _COUNTED)
    # one count that two read in turn does not fall, but where it began again, and is one number at one time
    mixed = both.join(found.select("pair", *(f"{name}_slack" for name in _COUNTED)), on="pair").sort("pair", "at", "ios", "busy")
    is_turn = pl.col("side") != pl.col("side").shift(1).over("pair")
    is_same_time = pl.col("at") == pl.col("at").shift(1).over("pair")
    more = {name: pl.col(name).diff().over("pair") for name in _COUNTED}
    slacks = {name: pl.col(f"{name}_slack") for name in _COUNTED}
    fell = pl.any_horizontal(
        pl.when(is_same_time).then(one.abs() > slacks[name]).otherwise(one < -slacks[name]) for name, one in more.items()
    )
    falls = mixed.group_by("pair").agg((is_turn & fell).sum().alias("falls_mixed"))
    rate = {name: (pl.col(name) / pl.col("seconds"), pl.col(f"{name}_other") / pl.col("seconds_other")) for name in _COUNTED}
    grew_alike = pl.all_horizontal(
        ((one - other).abs() <= ALIKE * pl.max_horizontal(one, other) + (0 if name == "ios" else FEW_SECONDS / pl.col("seconds")))
        for name, (one, other) in rate.items()
    ).fill_null(False)  # fmt: skip
    few = (pl.col("ios") < FEW_IOS) & (pl.col("ios_other") < FEW_IOS)
    is_one_count = pl.col("falls_mixed") <= pl.max_horizontal("falls", "falls_other")
    others = {name: _disjoint(name) for name in ("serial", "wwn")}
    shares_wwn = (pl.col("wwn").list.set_intersection("wwn_other").list.len() > 0).fill_null(False)
    # where the one was read before the other, the drive may have been swapped in between
    is_at_once = (pl.col("from") <= pl.col("until_other")) & (pl.col("from_other") <= pl.col("until"))
    is_other = others["serial"] & ~shares_wwn & is_at_once
    said = pl.when(is_other).then(
        pl.format("serials {} and {}", pl.col("serial").list.first(), pl.col("serial_other").list.first())
    ).otherwise(
        pl.format("{} I/Os of {} s and {} of {} s in the same {} minutes", *(
            pl.col(name).round().cast(pl.Int64) for name in ("ios", "busy", "ios_other", "busy_other")
        ), (pl.col("seconds") / 60).ceil().cast(pl.Int64))
    )  # fmt: skip
    found = found.join(falls, on="pair").filter(is_other | ~(is_one_count | grew_alike | few))
    return found.with_columns(said.alias("said")).sort("pair").select(*CONTRADICTION)


_PATHS = ("path", "path_right")
_COUNTED = {"ios": FEW_IOS, "busy": FEW_SECONDS}


def _disjoint(name: str) -> pl.Expr:
    one, other = pl.col(name), pl.col(f"{name}_other")
    return (one.list.len() > 0) & (other.list.len() > 0) & (one.list.set_intersection(other).list.len() == 0)


def _ordered(names: Collection[str]) -> list[str]:
    """Labels, those that say where a machine is first, those that may be otherwise in every scrape of it last."""
    others = sorted(name for name in names if name not in _OF_PLACE and name not in _OF_SCRAPE)
    return [*(name for name in _OF_PLACE if name in names), *others, *(name for name in _OF_SCRAPE if name in names)]


def telling(pairs: Sequence[tuple[Mapping[str, str], Mapping[str, str]]]) -> tuple[str, ...]:
    """The labels that tell the two of every pair apart: one if one does, else as many as it takes; those of the place before others."""
    ordered = _ordered({name for pair in pairs for labels in pair for name in labels})

    def apart(name: str, pair: tuple[Mapping[str, str], Mapping[str, str]]) -> bool:
        return pair[0].get(name, "") != pair[1].get(name, "")

    alone = [name for name in ordered if all(apart(name, pair) for pair in pairs)]
    if alone:
        return (alone[0],)
    chosen: list[str] = []
    left = list(pairs)
    for name in ordered:
        if any(apart(name, pair) for pair in left):
            chosen.append(name)
            left = [pair for pair in left if not apart(name, pair)]
    return tuple(chosen)


def naming_of(
    found: Iterable[pl.DataFrame], landed: Mapping[str, Collection[str]], seen: Sequence[pl.DataFrame]
) -> tuple[Naming, list[str]]:
    """How hosts with contradictions are named, and a note for each choice of labels.

    landed: host -> its names of earlier calls, which it keeps when there is too little to contradict. seen: all host and path.
    """
    rows = pl.concat([pl.DataFrame(schema=CONTRADICTION), *found]).unique([*DRIVE, "path_right"], keep="first", maintain_order=True)
    naming: Naming = {}
    notes: dict[tuple[str, ...], list[str]] = {}
    for (host,), of_host in sorted(rows.partition_by("host", as_dict=True, maintain_order=True).items()):
        pairs = [(labels_of(one), labels_of(other)) for one, other in of_host.select(_PATHS).iter_rows()]
        naming[str(host)] = by = telling(pairs)
        names = sorted({named(str(host), labels, by) for pair in pairs for labels in pair})
        device, said = of_host.select("device", "said").row(0)
        notes.setdefault(by, []).append(f"{host}/{device} ({said}) of {', '.join(names)}")
    places = pl.concat([pl.DataFrame(schema={"host": pl.String(), "path": pl.String()}), *seen]).unique().sort("host", "path")
    for host, path in places.filter(pl.col("host").is_in(list(landed))).iter_rows():
        if host not in naming:
            labels = labels_of(path)
            known = [name for name in _ordered(labels) if named(host, labels, (name,)) in landed[host]]
            naming |= {host: (known[0],)} if known else {}
    return naming, [
        f"series of one host and device contradict each other; {_labels(by)} apart and becomes part of the host's name: {some_of(said)}"
        for by, said in notes.items()
    ]


def known_by_all(readings: pl.DataFrame) -> pl.DataFrame:
    """Readings by other collectors with node_exporter's last description of the drive (IDENTITY), where they have none."""
    is_other = readings["path"].str.contains(f'"{COLLECTOR}": ', literal=True)
    own, others = readings.filter(~is_other), readings.filter(is_other)
    if not own.height or not others.height:
        return readings
    said = until_reset(own.select(*DRIVE, "at", *IDENTITY), others).drop("path").sort("at")
    named = others.sort("at").join_asof(said, on="at", by=["host", "device"], strategy="backward", check_sortedness=False, suffix="_said")
    named = named.with_columns(pl.coalesce(name, f"{name}_said").alias(name) for name in IDENTITY)
    return pl.concat([own, named.select(readings.columns)])


def watched_by_several(seen: Sequence[pl.DataFrame]) -> list[str]:
    """A note on the hosts whose drives several collectors count. seen: host and path of all counters."""
    by: dict[str, set[str]] = {}
    for host, path in pl.concat(seen).unique().iter_rows() if seen else ():
        by.setdefault(host, set()).add(labels_of(path).get(COLLECTOR, TODAY.collector))
    told = [f"{host} by {', '.join(sorted(collectors))}" for host, collectors in sorted(by.items()) if len(collectors) > 1]
    return [f"drives are counted by several collectors, and each time counts once: {some_of(told)}"] if told else []


def _labels(names: tuple[str, ...]) -> str:
    return f"the label {names[0]} tells them" if len(names) == 1 else f"together the labels {', '.join(names)} tell them"


def labels_of(path: str) -> dict[str, str]:
    """The labels that a path is."""
    return json.loads(path) if path else {}


def named(host: str, labels: Mapping[str, str], by: tuple[str, ...]) -> str:
    """A host's name with the values of these labels: `10.0.0.5@us1`; behind a slash a device is named, so none is in it.

    Where its target's port alone tells it apart, the target.
    """
    values = [value.replace("/", "-") for name in by if (value := labels.get(name))]
    if len(values) == 1 and host_of(values[0]) == host:
        return values[0]
    return f"{host}@{','.join(values)}" if values else host


def with_names(readings: pl.DataFrame, naming: Naming) -> pl.DataFrame:
    """Rows (host, path) of hosts with names by `naming`; a RAID group that is named after its host, too."""
    mine = readings.filter(pl.col("host").is_in(list(naming))).select("host", "path").unique() if naming else readings.clear()
    if not mine.height:
        return readings
    names = mine.with_columns(pl.Series("named", [named(host, labels_of(path), naming[host]) for host, path in mine.iter_rows()]))
    joined = readings.join(names, on=["host", "path"], how="left", maintain_order="left")
    host = pl.coalesce("named", "host")
    if "raid_group_id" in readings.columns:
        group = pl.col("raid_group_id")
        is_hosts = group.str.starts_with(pl.col("host") + "/").fill_null(False)
        rest = group.str.slice(pl.col("host").str.len_chars())
        joined = joined.with_columns(pl.when(is_hosts).then(host + rest).otherwise(group).alias("raid_group_id"))
    return joined.with_columns(host.alias("host")).select(readings.columns)
