"""The calibration's own judge, and what it must refuse."""

from pathlib import Path

import numpy as np
import pytest

from simulate.parameters import KINDS, MAXIMUM_NUMBERS, PRESETS, Kind, defaults, number_count
from simulate.streams import BLOCK, Dealer, Leveller, Trait, places, poisson
from workbench.calibrate.evaluate import Population, Share, _intervals, fleet_data, wilson
from workbench.calibrate.judge import Verdict, curves, judge, ks_distance, references
from workbench.calibrate.report import DAYS, GROUPS, SEED, SENSITIVE, moved_ids

SEEDS = Path(__file__).parents[2] / "seeds"


def test_the_parameter_file_has_at_most_200_numbers_for_all_presets() -> None:
    assert number_count(defaults()) <= MAXIMUM_NUMBERS
    assert set(PRESETS) == {"tail-at-store", "tail-at-store-disk", "tail-at-store-ssd"}


def test_half_of_the_judged_numbers_of_each_family_are_held_out() -> None:
    of_family: dict[tuple[str, str], list[bool]] = {}
    for ref in references(SEEDS):
        for kind in ("disk", "ssd"):
            if ref["subject"] in (kind, "both"):
                of_family.setdefault((ref["id"].partition("-")[0], kind), []).append(kind in ref["fitted"].split())
    fitted = [any_fitted for flags in of_family.values() for any_fitted in flags]
    assert 0.45 < np.mean(fitted) < 0.6
    assert all(0 < sum(flags) < len(flags) for flags in of_family.values() if len(flags) > 3)


def test_stratified_draws_are_balanced_for_any_sample_size() -> None:
    dealer, again = Dealer(3, "ssd"), Dealer(3, "ssd")
    dealt = np.array([dealer.deal(Trait.EPISODE, 2, 3) for _ in range(100)])
    assert [again.deal(Trait.EPISODE, 2, 3) for _ in range(10)] == dealt[:10].tolist()
    assert again.deal(Trait.EPISODE, 3, 3) != dealt[0].tolist()
    for column in dealt.T:
        assert np.max(np.abs(np.sort(column) - (np.arange(100) + 0.5) / 100)) < 0.05
    assert abs(sum(dealer.count(Trait.EPISODES, 2, 0.3) for _ in range(100)) - 30) <= 1
    drawn = np.array([poisson(dealer.deal(Trait.AFTERSHOCK, 2)[0], 0.5) for _ in range(1000)])
    assert drawn.mean() == pytest.approx(0.5, abs=0.02)
    assert np.mean(drawn == 0) == pytest.approx(np.exp(-0.5), abs=0.01)


def test_hours_are_spread_evenly_however_long_each_thing_lasts() -> None:
    lengths = np.exp(np.random.default_rng(5).standard_normal(400) * 1.2)
    dealer = Dealer(1, "ssd")
    numbers = np.array([dealer.over_hours(Trait.EPISODE_HOURS, 2, float(hours)) for hours in lengths])
    assert 0 <= numbers.min() < numbers.max() < 1
    for share in (0.25, 0.5, 0.75, 0.9, 0.97):
        assert lengths[numbers >= share].sum() / lengths.sum() == pytest.approx(1 - share, abs=0.03)


def test_ranks_are_level_by_weight_however_unequal_the_weights_are() -> None:
    leveller, rng = Leveller(), np.random.default_rng(1)
    weights = rng.pareto(1.1, 2000) + 0.1
    ranks = np.array([leveller.next(weight) for weight in weights])
    shares = np.array([weights[(ranks >= i / 8) & (ranks < (i + 1) / 8)].sum() for i in range(8)]) / weights.sum()
    drawn = rng.random(len(weights))
    by_chance = np.array([weights[(drawn >= i / 8) & (drawn < (i + 1) / 8)].sum() for i in range(8)]) / weights.sum()
    assert np.abs(shares - 1 / 8).max() < max(np.abs(by_chance - 1 / 8).max() / 2, weights.max() / weights.sum())


def test_every_seed_deals_the_same_to_shuffled_groups() -> None:
    assert Dealer(4, "disk").deal(Trait.AILING, 1, 3) == Dealer(5, "disk").deal(Trait.AILING, 1, 3)
    assert places(4, "disk", 25)[:BLOCK] != places(5, "disk", 25)[:BLOCK]
    assert places(4, "disk", 25) == places(4, "disk", 130)[: 3 * BLOCK]
    assert [sorted(places(4, "disk", 25)[i : i + BLOCK]) for i in (0, 10, 20)] == [list(range(i, i + BLOCK)) for i in (0, 10, 20)]


def test_intervals_break_at_stable_and_at_missing_hours() -> None:
    slowdown = np.array([[3, 2, 5, np.nan, 2, 1, 1, 1, 1, 4]]).T
    first, length, _ = _intervals(slowdown, 2.0)
    assert list(zip(first.tolist(), length.tolist(), strict=True)) == [(0, 3), (4, 1), (9, 1)]


def test_an_interval_counts_clusters_not_hours() -> None:
    cluster = np.repeat(np.arange(10), 100)
    in_one_group = Share.of(cluster == 0, cluster)
    spread = Share.of(np.arange(1000) % 10 == 0, cluster)
    assert in_one_group.value == spread.value == 0.1
    assert in_one_group.interval()[1] > 0.35
    assert spread.interval() == pytest.approx(wilson(0.1, 1000))


def test_the_distance_of_a_curve_is_zero_to_itself_alone() -> None:
    vertices = curves(SEEDS)["5a", "Disk"]
    hours = np.array([x for x, _ in vertices])
    drawn = np.repeat(np.rint(hours), np.rint(np.diff([0.0, *(y for _, y in vertices)]) * 100_000).astype(int).clip(0))
    rest = np.full(100_000 - len(drawn), 1000.0)
    same = Population(np.concatenate([drawn, rest]), np.zeros(100_000, dtype=np.int64))
    assert ks_distance("5a", vertices, same) < 0.002
    halved = Population(same.value / 2, same.cluster)
    assert ks_distance("5a", vertices, halved) > 0.1


@pytest.fixture(scope="module")
def before() -> dict[Kind, list[Verdict]]:
    """The verdicts on the calibrated fleet."""
    return {kind: judge(references(SEEDS), fleet_data(defaults(), SEED, DAYS, {"disk": 0, "ssd": 0, kind: GROUPS[kind]})) for kind in KINDS}


@pytest.mark.soak
@pytest.mark.xdist_group("calibrate")
@pytest.mark.parametrize("name", sorted(SENSITIVE))
def test_the_study_refuses_a_mechanism_that_is_off_by_half(name: str, before: dict[Kind, list[Verdict]]) -> None:
    factor, expected = SENSITIVE[name]
    assert expected in moved_ids(defaults(), name, factor, before["disk" if name.startswith("disk.") else "ssd"])
