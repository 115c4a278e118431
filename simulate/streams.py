"""Independent random streams, one per purpose, group and day.

A stream is a place in the counter of one Philox generator keyed by seed, kind and group: no group's numbers depend on
how many other groups there are, on the order they are made in, or on which days are made.
"""

import math
from enum import IntEnum
from functools import cache
from statistics import NormalDist

import numpy as np

from simulate.parameters import KINDS, Kind


class Purpose(IntEnum):
    """What a stream decides. The values are part of the output: renumbering changes every simulated fleet."""

    INVENTORY = 1
    WORKLOAD = 2
    LIVES = 3
    COLLECTION = 4
    HOURS = 5
    AWKWARD = 6
    EVEN = 7


def stream(seed: int, kind: Kind, group: int, purpose: Purpose, day: int = 0) -> np.random.Generator:
    """The stream of one purpose for group number `group` of `kind`, on `day` where the purpose goes by day."""
    key = [seed, (KINDS.index(kind) << 48) | group]
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, day, int(purpose)]))


class Trait(IntEnum):
    """What is spread evenly over groups and drives. The values are part of the output."""

    WIDTH = 0
    OBSERVATION = 1
    OBSERVATION_LENGTH = 2
    FAMILY = 3
    AGE = 4
    CLOSED_LOOP = 5
    COARSE_TIMER = 6
    IDLE = 7
    NOISE = 8
    RATE = 9
    SHARED_PATH = 10
    LARGE_IO = 11
    AGE_KNOWN = 12
    MODEL_KNOWN = 13
    FRAILTY = 14
    SEVERITY = 15
    FAIL_SLOW = 16


PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
STANDARD_NORMAL = NormalDist()


@cache
def _shifts(seed: int, kind: Kind) -> tuple[float, ...]:
    return tuple(stream(seed, kind, 0, Purpose.EVEN).random(len(PRIMES)).tolist())


def even(seed: int, kind: Kind, group: int, trait: Trait, slot: int = 0) -> float:
    """A number in 0..1 for a group or drive: uniform over seeds, and spread evenly over the groups of one fleet.

    A fleet of 40 groups drawn independently may hold no group of a kind that one in 20 is; such a fleet says little about
    the population. These numbers are a shifted Kronecker sequence: any run of groups covers 0..1 without large gaps.
    """
    step = math.sqrt(PRIMES[trait])
    return (_shifts(seed, kind)[trait] + group * step + slot * step * (math.sqrt(5) - 1) / 2) % 1.0


def even_normal(seed: int, kind: Kind, group: int, trait: Trait, slot: int = 0) -> float:
    """The same as a standard normal number."""
    return STANDARD_NORMAL.inv_cdf(min(max(even(seed, kind, group, trait, slot), 1e-9), 1 - 1e-9))
