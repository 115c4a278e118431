"""Independent random streams, one per purpose, group and day.

A stream is a place in the counter of one Philox generator keyed by seed, kind and group: no group's numbers depend on
how many other groups there are, on the order they are made in, or on which days are made.
"""

from enum import IntEnum

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


def stream(seed: int, kind: Kind, group: int, purpose: Purpose, day: int = 0) -> np.random.Generator:
    """The stream of one purpose for group number `group` of `kind`, on `day` where the purpose goes by day."""
    key = [seed, (KINDS.index(kind) << 48) | group]
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, day, int(purpose)]))
