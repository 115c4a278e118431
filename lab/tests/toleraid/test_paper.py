"""The paper's distributions: what section 5 of The Tail at Store reports, for two seeds."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from engine.warehouse import PROJECT
from lab.tests.toleraid import plain
from lab.toleraid import PAPER_JITTER, Arrivals, Experiment, Layout, Periodic, Policies, Rare, independent, joint, simulate

COUNT = 400_000


@pytest.fixture(scope="module")
def rare() -> Rare:
    with (PROJECT / "study/seeds/paper_curves.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["figure"], row["curve"]) == ("4a", "Si")]
    return Rare.of_curve([(float(row["x"]), float(row["y"])) for row in rows])


def shares(experiment: Experiment) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Percent of requests that take 2 or more, percent of extra reads, and P99, by policy."""
    _, outcomes = simulate(experiment)
    return (
        {name: 100 * (COUNT - outcome.count_below(2)) / COUNT for name, outcome in outcomes.items()},
        {name: 100 * outcome.extra_reads / COUNT / 6 for name, outcome in outcomes.items()},
        {name: outcome.percentile(990) for name, outcome in outcomes.items()},
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_rare(rare: Rare, seed: int) -> None:
    slow, extra, _ = shares(Experiment(rare, Arrivals(COUNT), seed=seed))
    assert slow["none"] == pytest.approx(1.54, abs=0.07)
    assert slow["proactive1"] == pytest.approx(0.63, abs=0.05)
    assert slow["proactive2"] == pytest.approx(0.28, abs=0.04)
    assert extra["reactive"] == pytest.approx(0.36, abs=0.02)
    assert (extra["none"], extra["proactive1"], extra["proactive2"]) == (0, 100 / 6, 200 / 6)


@pytest.mark.parametrize("seed", [1, 2])
def test_rare_with_jitter(rare: Rare, seed: int) -> None:
    slow, extra, p99 = shares(Experiment(rare, Arrivals(COUNT), jitter=PAPER_JITTER, seed=seed))
    assert slow["none"] == pytest.approx(2.28, abs=0.1)
    assert slow["proactive1"] == pytest.approx(0.73, abs=0.06)
    assert slow["proactive2"] == pytest.approx(0.31, abs=0.04)
    assert extra["reactive"] == pytest.approx(0.50, abs=0.02)
    for policy, plotted in {"none": 2.44, "reactive": 2.37, "adaptive": 2.45, "proactive1": 1.98}.items():
        assert p99[policy] == pytest.approx(plotted, rel=0.08)


@pytest.mark.parametrize("seed", [1, 2])
def test_periodic(seed: int) -> None:
    slow, extra, _ = shares(Experiment(Periodic(), Arrivals(COUNT), seed=seed))
    assert slow["none"] == pytest.approx(13.8, abs=0.6)
    assert extra["reactive"] == pytest.approx(2.3, abs=0.1)
    assert extra["adaptive"] == pytest.approx(2.3, abs=0.1)
    assert slow["adaptive"] == pytest.approx(0.23, abs=0.03)
    assert slow["proactive1"] == 0
    _, _, p99 = shares(Experiment(Periodic(), Arrivals(COUNT), jitter=PAPER_JITTER, seed=seed))
    for policy, plotted in {"none": 5.24, "reactive": 3.22, "adaptive": 1.88, "proactive1": 1.72}.items():
        assert p99[policy] == pytest.approx(plotted, rel=0.08)


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("name", ["rare", "periodic", "joint", "independent"])
def test_a_simulation_equals_the_plain_reference(rare: Rare, name: str, layout: Layout) -> None:
    distribution = {
        "rare": rare,
        "periodic": Periodic(),
        "joint": joint([[9, 2.5, 1, 1], [1.2, 1.1, 1], [3, 3, 3, 3, 1, 1, 1, 1, 0.9], [5]]),
        "independent": independent([1, 1.1, 4], [6, 3, 1]),
    }[name]
    blocks = []

    def keep(times, drawn, base, served):
        blocks.append((drawn, base, served))

    experiment = Experiment(distribution, Arrivals(3_000), data_drives=4, layout=layout, jitter=PAPER_JITTER, seed=3)
    requests, _ = simulate(experiment, keep)
    ((drawn, base, served),) = blocks
    times = base + np.maximum(np.concatenate([drawn.data, drawn.parity]) - 1, 0)
    shifts = (requests.stripes % 6).tolist() if layout is Layout.ROTATING else None
    expected = plain.serve([(column[:4], column[4:]) for column in times.T.tolist()], 2.0, 3, shifts)
    for policy, found in expected.items():
        assert list(zip(served[policy].completions.tolist(), served[policy].extra_reads.tolist(), strict=True)) == found


def test_a_joint_vector_fills_data_drives_first_then_reuses_lower_ranks() -> None:
    random = np.random.default_rng(1)
    drawn = joint([[5, 4, 3, 1.2, 1.1, 0.9]])._draw_joint(random, 4, 2, 1_000)
    assert {tuple(sorted(column)) for column in drawn.data.T.tolist()} == {(1.2, 3, 4, 5)}
    assert {tuple(sorted(column)) for column in drawn.parity.T.tolist()} == {(0.9, 1.1)}
    assert drawn.data[0].mean() == pytest.approx(3.3, abs=0.2), "in any order"
    wider = joint([[5, 4, 3, 1.2, 1.1]])._draw_joint(random, 6, 2, 1_000)
    assert set(wider.data.ravel().tolist()) == {5, 4, 3, 1.2, 1.1} and (np.sort(wider.data, axis=0)[:-3] < 2).all()
    alone = joint([[5]])._draw_joint(random, 2, 1, 10)
    assert set(alone.parity.ravel().tolist()) == {1}


def test_seconds_ahead_reach_to_the_first_later_request_without() -> None:
    """Late in requests 0 to 4 of one a second: parity is read ahead for 3, 4 and 5."""
    late = np.ones((3, 9))
    late[1, :5] = 9
    ahead = Policies(3, 1).serve(late, np.ones((1, 9)))["adaptive"]
    assert ahead is not None and ahead.proactive_reads.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0]
    from lab.toleraid.run import _proactive

    assert _proactive(ahead.proactive_reads, np.arange(9.0), False, is_last=True) == (3.0, False)
