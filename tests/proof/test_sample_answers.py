"""`fct_drive_samples` equals an independent computation, on a random awkward fleet that two sources saw by the five minutes.

DRIVETAIL_SEEDS="5" repeats a run.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from engine.build import build
from engine.warehouse import Warehouse
from ingest import ingest
from tests.proof.support import seeds
from tests.reference.samples import Place, Snapshot, fct_drive_samples, of_diskstats, of_perseus

START = int(datetime(2026, 1, 5, 10, tzinfo=UTC).timestamp())
HOURS, PART = 3, 300
Delivery = dict[tuple[str, str], list[Snapshot]]


def looked_at(draw: random.Random) -> Delivery:
    """Two hosts over three hours: idle drives, drives of no latency, boots, gaps, looks that come too rarely."""
    delivery: Delivery = {}
    for host, devices in (("web1", "abcdef"), ("web2", "abcd")):
        at = float(START)
        counters = {device: [draw.randrange(10**6) for _ in range(4)] for device in devices}
        while at < START + HOURS * 3600:
            for device, values in counters.items():
                if draw.random() < 0.01:
                    values[:] = [0] * 4
                reads, writes = (draw.choice([0, 1, 40, 200]) if draw.random() < 0.8 else 0 for _ in range(2))
                us = draw.choice([0, 1, 1, 1, 2, 3, 9])
                values[:] = [total + more for total, more in zip(values, (reads, reads * us, writes, writes * us), strict=True)]
                if draw.random() < 0.95:  # a drive that is away for a moment
                    delivery.setdefault((host, f"sd{device}"), []).append((at, *values))
            at += draw.choice([60, 60, 60, 61, 150, 150, 400, 1000])
    return delivery


def written(folder: Path, delivery: Delivery) -> Path:
    looks: dict[tuple[str, float], list[str]] = {}
    for (host, device), snapshots in delivery.items():
        for at, reads, read_ms, writes, write_ms in snapshots:
            looks.setdefault((host, at), []).append(
                f"8 0 {device} {reads} 0 {8 * reads} {read_ms} {writes} 0 {8 * writes} {write_ms} 0 0 0"
            )
    for (host, at), lines in sorted(looks.items()):
        (folder / host).mkdir(parents=True, exist_ok=True)
        with (folder / host / "diskstats").open("a") as out:
            out.write("\n".join([f"TS {at}", *lines]) + "\n")
    return folder


def mapped(folder: Path, draw: random.Random) -> tuple[Path, dict[tuple[str, str], list[Place]]]:
    """web1's drives by serial: five in a group, a spare; in one place another drive from the second hour on. web2 nobody knows."""
    places = {("web1", f"sd{d}"): [Place(f"S-{d}", "g1", "spare" if d == "f" else "data")] for d in "abcdef"}
    places["web1", f"sd{draw.choice('abcde')}"].append(Place("S-new", "g1", "data", START + 3600))
    lines = ["host,device,drive_id,raid_group_id,role,valid_from"]
    for (host, device), listed in places.items():
        for place in listed:
            since = "" if place.since is None else f"{datetime.fromtimestamp(place.since, UTC):%Y-%m-%dT%H:%M:%SZ}"
            lines.append(f"{host},{device},{place.drive_id},{place.raid_group_id},{place.role},{since}")
    path = folder / "mapping.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, places


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(1)[:1])
def test_samples_equal_the_reference(seed: int, tmp_path: Path) -> None:
    print(f"repeat with DRIVETAIL_SEEDS={seed}")
    draw = random.Random(f"samples {seed}")
    whole = looked_at(draw)
    # what came first stops in the middle of the second hour, what came next begins before it
    middle = START + 3600 + draw.randrange(1000, 2000)
    parts = [
        {device: [look for look in looks if look[0] < middle] for device, looks in whole.items()},
        {device: [look for look in looks if look[0] > middle - 700] for device, looks in whole.items()},
    ]
    mapping, places = mapped(tmp_path, draw)
    perseus = [(START + 15 * n, f"disk{d}", draw.randrange(1, 999) / 8) for d in range(4) for n in range(1, 481) if draw.random() < 0.6]
    day = tmp_path / "perseus/cluster_A/host_1/day.csv"
    day.parent.mkdir(parents=True)
    day.write_text("ts,disk_id,throughput,latency\n" + "".join(f"{ends},{disk},,{us}\n" for ends, disk, us in perseus))
    deliveries = [
        ("diskstats", written(tmp_path / "one", parts[0])),
        ("diskstats", written(tmp_path / "two", parts[1])),
        ("perseus", day.parents[2]),
        ("mapping", mapping),
    ]
    draw.shuffle(deliveries)
    warehouse = Warehouse(tmp_path / "warehouse")
    for source, path in deliveries:
        options = {} if source == "mapping" else {"resolution": "5m"}
        assert ingest(source, path, warehouse.root, source_options=options).rows_rejected == 0
    build(warehouse)
    samples = [*of_diskstats(parts, places, PART), *of_perseus("cluster_A/host_1", perseus, PART)]
    expected = fct_drive_samples(samples, PART)
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:
        columns = list(expected[0])
        rows = connection.execute(f"select {', '.join(columns)} from marts.fct_drive_samples").fetchall()
    found = [dict(zip(columns, row, strict=True)) for row in rows]

    def ordered(rows: list[dict]) -> list[dict]:
        # what was observed is whole seconds; a share of 300 of them may differ in its last bit
        rows = [{**row, "coverage": round(row["coverage"] * PART, 9)} for row in rows]
        return sorted(rows, key=lambda row: (row["drive_id"], row["from_utc"]))

    assert ordered(found) == ordered(expected)
    reasons = {row["exclusion_reason"] for row in expected}
    assert len(expected) > 200 and {None, "low_coverage", "no_io"} <= reasons and any(row["is_slow"] for row in expected)
