"""Each request under each policy, against the plain reference and by eye."""

from __future__ import annotations

import numpy as np
import pytest

from drivetail.cli import options
from lab.tests.toleraid import plain
from lab.toleraid import POLICIES, Policies


def serve(data: np.ndarray, parity: np.ndarray, *, st: float = 2.0, sr: int = 3, shift: np.ndarray | None = None, pieces: int = 1):
    """Completions and extra reads of each policy; pieces: how many calls the requests come in."""
    policies = Policies(len(data), len(parity), st, sr)
    parts = np.array_split(np.arange(data.shape[1]), pieces)
    served = [policies.serve(data[:, part], parity[:, part], None if shift is None else shift[part]) for part in parts]
    return {
        name: list(
            zip(
                np.concatenate([each[name].completions for each in served]).tolist(),
                np.concatenate([each[name].extra_reads for each in served]).tolist(),
                strict=True,
            )
        )
        for name in POLICIES
        if served[0][name] is not None
    }


def random_times(seed: int, drives: int, requests: int) -> np.ndarray:
    """Times near 1, some exactly 2, and drives that are slow for a while, often several at a time."""
    random = np.random.default_rng(seed)
    times = np.round(random.uniform(0.5, 1.6, (drives, requests)), 1)
    for _ in range(requests // 8):
        drive, first = random.integers(drives), random.integers(requests)
        times[drive, first : first + random.integers(1, 9)] = random.choice([1.9, 2.0, 2.5, 3.0, 5.0, 40.0])
    return times


@pytest.mark.parametrize("data_drives", [1, 2, 4, 6, 14])
@pytest.mark.parametrize("sr", [1, 3, 10])
@pytest.mark.parametrize("parity", [1, 2])
@pytest.mark.parametrize("is_rotating", [False, True])
def test_every_request_equals_the_plain_reference(data_drives: int, sr: int, parity: int, is_rotating: bool) -> None:
    for seed, st in enumerate([2.0, 1.5, 3.0]):
        times = random_times(seed, data_drives + parity, 400)
        data, parities = times[:data_drives], times[data_drives:]
        shift = np.random.default_rng(seed).integers(0, data_drives + parity, 400) if is_rotating else None
        requests = [(data[:, i].tolist(), parities[:, i].tolist()) for i in range(400)]
        expected = plain.serve(requests, st, sr, None if shift is None else shift.tolist())
        found = serve(data, parities, st=st, sr=sr, shift=shift, pieces=1 + 6 * seed)
        assert found == {name: served for name, served in expected.items() if served}


@pytest.mark.parametrize(
    ("data", "parity", "expected"),
    [
        ((1, 1, 1, 1, 1, 5), (1, 1), {"none": (5, 0), "reactive": (3, 1), "proactive1": (1, 1), "proactive2": (1, 2), "adaptive": (3, 1)}),
        ((1, 1, 1, 1, 4, 5), (1, 1), {"none": (5, 0), "reactive": (3, 2), "proactive1": (4, 1), "proactive2": (1, 2), "adaptive": (3, 2)}),
        ((1, 1, 1, 1, 1, 1), (1, 1), {"none": (1, 0), "reactive": (1, 0), "proactive1": (1, 1), "proactive2": (1, 2), "adaptive": (1, 0)}),
        ((1, 1, 1, 1, 1, 1.9), (1, 1), {"none": (1.9, 0), "reactive": (1.9, 0), "proactive1": (1, 1), "proactive2": (1, 2)}),
        # exactly ST is late, and no read is slower for being rescued
        ((1, 1, 1, 1, 1, 2), (1, 1), {"none": (2, 0), "reactive": (2, 1), "proactive1": (1, 1), "adaptive": (2, 1)}),
        # at most two drives can be masked
        ((1, 1, 1, 4, 5, 6), (1, 1), {"none": (6, 0), "reactive": (4, 2), "proactive1": (5, 1), "proactive2": (4, 2)}),
        # a slow parity rescues nothing
        ((1, 1, 1, 1, 1, 5), (9, 1), {"reactive": (5, 1), "proactive1": (5, 1), "proactive2": (1, 2)}),
    ],
)  # fmt: skip
def test_worked_examples(data, parity, expected) -> None:
    served = serve(np.array([data], dtype=float).T, np.array([parity], dtype=float).T)
    assert {name: served[name][0] for name in expected} == expected


def test_a_drive_that_keeps_being_late_is_read_around_until_it_is_not() -> None:
    """Late in requests 0 to 5. The parity is read ahead from the fourth on, and once more for the request that shows the drive is well."""
    data = np.ones((6, 8))
    data[2, :6] = 5
    served = serve(data, np.ones((2, 8)), sr=3)
    assert served["adaptive"] == [(3, 1), (3, 1), (3, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 0)]


def test_raid_5_has_no_second_parity() -> None:
    served = serve(np.array([[1.0], [4.0], [5.0]]), np.array([[1.0]]))
    assert served == {"none": [(5, 0)], "reactive": [(4, 1)], "proactive1": [(4, 1)], "adaptive": [(4, 1)]}


@pytest.mark.parametrize("seed", [1, 2])
def test_policies_are_ordered_in_every_request(seed: int) -> None:
    times = random_times(seed, 8, 5_000)
    served = {name: np.array(found).T for name, found in serve(times[:6], np.ones((2, 5_000))).items()}
    none, reactive, one, two, adaptive = (served[name][0] for name in POLICIES)
    assert (none >= reactive).all() and (reactive >= adaptive).all() and (adaptive >= two).all()
    assert (none >= one).all() and (one >= two).all()
    assert (served["adaptive"][1] >= served["reactive"][1]).all()
    assert (served["adaptive"][1] > served["reactive"][1]).any()


def test_adaptive_without_an_end_of_patience_is_reactive() -> None:
    times = random_times(3, 8, 2_000)
    served = serve(times[:6], times[6:], sr=10**9)
    assert served["adaptive"] == served["reactive"]


def test_the_command_offers_every_policy() -> None:
    assert options.POLICIES == POLICIES
