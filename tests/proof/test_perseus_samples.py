"""Perseus over samples within hours: its fit is that of an independent computation, and is made again only where something came."""

from __future__ import annotations

import importlib.util
import json
import random
from datetime import UTC, date, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from engine.build import build, make_asked
from engine.errors import ModelError
from engine.publish import Publication
from engine.warehouse import PROJECT, Warehouse
from ingest import ingest
from tests.proof.support import asked
from tests.proof.test_marts_equal_reference import counts
from tests.reference import perseus

Sample = tuple[str, str, int, float, float | None]
"""Host, disk, end of its 15 seconds (unix), throughput and latency, which may be unknown."""
MODEL = PROJECT / "models/intermediate/detectors/int_raid_group_days__fitted.py"
DAYS = (date(2026, 1, 5), date(2026, 1, 6), date(2026, 1, 19), date(2026, 1, 20))
"""The third ends 15 days that begin with the first, the fourth does not."""
SLOW = {("host_1", "disk2"): (3.0, 130), ("host_1", "disk3"): (9.0, 130), ("host_2", "disk1"): (2.5, 70), ("host_2", "disk4"): (1.3, 40)}
"""How slow a disk is on every day, and for how many of its 130 minutes."""


def host_day(host: str, day: date, disks: list[str], draw: random.Random) -> list[Sample]:
    """130 minutes of disks whose latency rises with their throughput; some samples are missing, some say nothing, some minutes are idle."""
    begin = int(datetime(day.year, day.month, day.day, 9, 30, tzinfo=UTC).timestamp())
    samples: list[Sample] = []
    for disk in disks:
        factor, minutes = SLOW.get((host, disk), (1.0, 0))
        for number in range(4 * 130):
            if draw.random() < 0.05:
                continue
            load = 0.0 if number // 4 % 60 == 7 else draw.lognormvariate(0.0, 0.5)
            latency = (80 + 30 * load + draw.gauss(0, 4)) * (factor if number < 4 * minutes else 1.0) if load else 0.0
            samples.append(
                (host, disk, begin + 15 * (number + 1), round(load * 2e7, 1), None if draw.random() < 0.02 else round(latency, 2))
            )
    return samples


def write(samples: list[Sample], folder: Path, name: str = "samples") -> Path:
    """A delivery in Perseus' own layout."""
    for host, day in sorted({(sample[0], datetime.fromtimestamp(sample[2] - 15, UTC).date()) for sample in samples}):
        path = folder / f"cluster_A/{host}/{day}-{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            f"{end},{disk},{throughput},{'NA' if latency is None else latency}"
            for of, disk, end, throughput, latency in samples
            if of == host and datetime.fromtimestamp(end - 15, UTC).date() == day
        ]
        path.write_text("\n".join(["ts,disk_id,throughput,latency", *lines]) + "\n")
    return folder


def test_without_the_extra_a_build_of_samples_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None if name == "sklearn" else find_spec(name, *more))
    warehouse = Warehouse(tmp_path / "warehouse")
    samples = write(host_day("host_1", DAYS[0], ["disk1", "disk2", "disk3"], random.Random(1)), tmp_path / "samples")
    ingest("perseus", [samples], warehouse.root, source_options={"resolution": "5m"})
    with pytest.raises(ModelError, match=r"perseus needs sklearn for them; install drivetail\[perseus\]: `.*\[perseus\].?`"):
        build(warehouse)


@pytest.mark.soak
def test_verdicts_are_the_same_whatever_came_when(tmp_path: Path) -> None:
    """Hours without samples, four days of two hosts, then a drive of a day that was fitted: that RAID group's day alone is fitted again."""
    draw = random.Random(11)
    alone = host_day("host_3", DAYS[1], ["disk1"], draw)
    most = [
        sample
        for day in DAYS
        for host, disks in (("host_1", 5), ("host_2", 4))
        for sample in host_day(host, day, [f"disk{number}" for number in range(1, disks + 1)], draw)
    ]
    # inventory knows it: a new drive touches every hour of its group
    most += host_day("host_1", DAYS[0], ["disk9"], draw)
    # three drives of which two have samples
    most += host_day("host_3", DAYS[1], ["disk2", "disk3"], draw)
    late = [(host, "disk9", *rest) for host, _, *rest in host_day("host_1", DAYS[1], ["disk2"], draw)]
    warehouse = Warehouse(tmp_path / "warehouse")
    ingest("perseus", write(alone, tmp_path / "alone"), warehouse.root)
    first = build(warehouse).publication
    # who has no samples does not pay for the libraries, and is told nothing
    assert MODEL.stem not in models_run(first)
    assert pairs_of_perseus(warehouse) == {(0, 0, 0, None)}
    delivered: list[Sample] = []
    for name, samples in (("samples", most), ("late", late)):
        ingest("perseus", write(samples, tmp_path / name, name), warehouse.root, source_options={"resolution": "1m"})
        last = build(warehouse, daily=True).publication
        assert MODEL.stem in models_run(last)
        delivered += samples
    # the day of the late samples is fitted again, whole, and no other
    notes = [json.loads(line) for line in warehouse.log.read_text(encoding="utf-8").splitlines()]
    *_, again = (note for note in notes if note["phase"] == "days")
    assert (again["first"], again["last"]) == (f"{DAYS[1]}", f"{DAYS[1]}")
    # every part of the rule is there: flagged at once, by the days before, a day that is over after 15, too mild, and too short
    query = "select drive_id, day_utc, score, is_flagged from marts.fct_detector_verdicts where detector = 'perseus'"
    told = {(drive.removeprefix("cluster_A/"), day): tuple(judged) for drive, day, *judged in asked(warehouse.published, query)}
    assert [told[("host_1/disk2", day)] for day in DAYS] == [(25.0, False), (50.0, True), (75.0, True), (75.0, True)]
    assert told[("host_1/disk3", DAYS[0])] == (100.0, True)
    assert told[("host_1/disk9", DAYS[1])] == (25.0, False)
    assert {told[(f"host_2/disk{number}", DAYS[0])] for number in (1, 4)} == {(10.0, False), (1.0, False)}
    assert {drive for drive, _ in told} == {"host_1/disk2", "host_1/disk3", "host_1/disk9", "host_2/disk1", "host_2/disk4"}
    # samples of two drives of host_3 are too few: ten could be flagged, two are
    assert {pair[:2] for pair in pairs_of_perseus(warehouse)} == {(10, 2)}
    at_once = Warehouse(tmp_path / "at_once")
    ingest("perseus", write(alone, tmp_path / "alone"), at_once.root)
    ingest("perseus", write(delivered, tmp_path / "all"), at_once.root, source_options={"resolution": "1m"})
    build(at_once)
    for each in (at_once, warehouse):
        make_asked(each)
    assert counts(at_once) == counts(warehouse)


def models_run(publication: Publication) -> set[str]:
    """The models that ran for a publication."""
    record = json.loads(publication.path.with_suffix(".json").read_text(encoding="utf-8"))
    return set(record["model_seconds"])


def pairs_of_perseus(warehouse: Warehouse) -> set[tuple[Any, ...]]:
    """Drives compared, those that Perseus flagged, and both, of every pair with it over all days; and kappa."""
    query = """
        select drive_count, case when detector = 'perseus' then flagged_count else other_flagged_count end, both_count, kappa
        from report.detector_agreement where span = 'all' and 'perseus' in (detector, other_detector)
    """
    return set(asked(warehouse.published, query))


@pytest.fixture(scope="module")
def model() -> ModuleType:
    """The Python model as a module."""
    spec = importlib.util.spec_from_file_location("fitted", MODEL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bound(model: ModuleType, x: perseus.Points, y: perseus.Points, most: int = perseus.MOST_SAMPLES) -> perseus.Points | None:
    """The bound of each sample as the SQL makes it of the fit."""
    fit = model.fitted(x, y, eps=0.125, neighbours=5, degree=4, level=0.95, most=most)
    if fit is None:
        return None
    mean, deviation, curve, spread, _, _ = fit
    u = (x - mean) / deviation
    return np.polyval(curve[::-1], u) + np.sqrt(np.maximum(np.polyval(spread[::-1], u), 0.0))


@pytest.mark.parametrize("seed", range(6))
def test_the_libraries_fit_what_is_written_out_by_hand(model: ModuleType, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A cloud with a smaller one above it and samples far from both; in every other case more than are fitted."""
    draw = np.random.default_rng(seed)
    monkeypatch.setattr(perseus, "MOST_SAMPLES", 400 if seed % 2 else 8640)
    x = draw.lognormal(0.0, 0.4, 700) * 1e7
    y = 60 + x / 1e6 + draw.normal(0, 3, 700)
    y[draw.random(700) < 0.15] *= 2 + seed
    x[:3], y[:3] = 9e7, (1.0, 400.0, 900.0)
    expected = perseus.upper_bound(x, y)
    assert expected is not None
    np.testing.assert_allclose(bound(model, x, y, perseus.MOST_SAMPLES), expected, rtol=1e-7)


def test_samples_that_say_little_are_fitted_as_far_as_they_go(model: ModuleType) -> None:
    """One throughput, two throughputs, one latency: a constant, a line, no spread at all. Too few, or nowhere five together: nothing."""
    alike = np.full(40, 5e6)
    latency = 100 + np.arange(40) % 7.0
    np.testing.assert_allclose(bound(model, alike, latency), perseus.upper_bound(alike, latency), rtol=1e-9)
    two = np.where(np.arange(40) % 2, 5e6, 5.000001e6)
    for x, y in ((two, latency), (alike, np.full(40, 250.0))):
        fit = bound(model, x, y)
        assert (fit is None) == (perseus.upper_bound(x, y) is None)
        if fit is not None:
            np.testing.assert_allclose(fit, perseus.upper_bound(x, y), rtol=1e-7)
    assert bound(model, alike[:4], latency[:4]) is None
    # more samples are noise than of any cluster; one throughput says nothing of others
    scattered, usual = np.arange(12.0) * 1e6, np.full(7, 4.5e6)
    x, y = np.append(scattered, usual), np.append(scattered**2 / 1e9, 30000 + np.arange(7.0))
    fit, expected = bound(model, x, y), perseus.upper_bound(x, y)
    assert fit is not None and expected is not None
    np.testing.assert_allclose(fit[12:], expected[12:], rtol=1e-7)
    apart = np.arange(12.0) * 1e6
    assert bound(model, apart, apart**2) is None
    assert perseus.upper_bound(apart, apart**2) is None
