"""Random numbers that are dealt evenly, so that a small fleet has the make-up of a large one."""

import numpy as np
import pytest

from simulate.streams import BLOCK, Dealer, Leveller, Trait, places, poisson


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
