"""Independent random streams, one per purpose, group and day.

A stream is a place in the counter of one Philox generator keyed by seed, kind and group: no group's numbers depend on
how many other groups there are or on which days are made. What a fleet's make-up depends on is dealt, not drawn: `Dealer`.
"""

import math
from enum import IntEnum
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from simulate.parameters import KINDS, Kind


class Purpose(IntEnum):
    """Decisions of a stream. The values are part of the output: renumbering changes every simulated fleet."""

    INVENTORY = 1
    WORKLOAD = 2
    LIVES = 3
    COLLECTION = 4
    HOURS = 5
    AWKWARD = 6
    EVEN = 7
    HEALTH = 8


def stream(seed: int, kind: Kind, group: int, purpose: Purpose, day: int = 0) -> np.random.Generator:
    """The stream of one purpose for group number `group` of `kind`, on `day` where the purpose goes by day."""
    key = [seed, (KINDS.index(kind) << 48) | group]
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, day, int(purpose)]))


class Trait(IntEnum):
    """Draws spread evenly over groups, drives and episodes. The values are part of the output."""

    WIDTH = 0
    OBSERVATION = 1
    RECORD = 2
    FAMILY = 3
    AGE = 4
    CLOSED_LOOP = 5
    NOISE = 8
    RATE = 9
    SHARED_PATH = 10
    LARGE_IO = 11
    STRIPED = 12
    HOT_GROUP = 13
    AILING = 14
    FAIL_SLOW = 16
    EPISODE = 17
    SHARED_EPISODE = 18
    HOT_SPOT = 19
    UNPLUG = 20
    REPLUG = 21
    LATENCY = 22
    EPISODES = 23
    SHARED_EPISODES = 24
    HOT_SPOTS = 25
    AFTERSHOCK = 26
    EPISODE_HOURS = 27
    SHARED_HOURS = 28
    HOT_HOURS = 29
    STALL = 30
    STALL_HOURS = 31
    THROTTLE = 32
    IDLE = 33
    HICCUP = 34
    HICCUPS = 35
    SEVERITY = 36
    SHARED_SEVERITY = 37
    SWAP = 38


PRIMES = (
    2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101,
    103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173,
)  # fmt: skip
STANDARD_NORMAL = NormalDist()
MAKE_UP = 1
"""Where the sequences that are dealt begin. It is no seed: fleets of all seeds have the same make-up."""
LEVELLED: frozenset[Kind] = frozenset(("disk",))
"""Kinds of drives that have their ages dealt by drives and their severities by slow hours, not by groups and episodes."""
HALVINGS = 11
"""Ranks are levelled down to so small a part of 0..1."""
BLOCK = 10
"""Groups change places within blocks of this many, by the seed."""


def places(seed: int, kind: Kind, count: int) -> list[int]:
    """The places of `count` groups and some more, in the order in which they are dealt to: whole blocks, each shuffled by the seed.

    A group keeps its place however many more there are.
    """
    firsts = range(0, count, BLOCK)
    return [first + int(i) for first in firsts for i in stream(seed, kind, first, Purpose.EVEN).permutation(BLOCK)]


def poisson(u: float, mean: float) -> int:
    """The Poisson number at rank `u` (0..1)."""
    count, chance = 0, math.exp(-mean)
    while u >= chance and count < 20:
        u, count = u - chance, count + 1
        chance *= mean / count
    return count


def normal(u: float) -> float:
    """The standard normal number at rank `u` (0..1)."""
    return STANDARD_NORMAL.inv_cdf(min(max(u, 1e-9), 1 - 1e-9))


@cache
def _steps(count: int) -> tuple[float, ...]:
    """Steps of a sequence that fills the unit cube of `count` dimensions evenly (Roberts' generalised golden ratio)."""
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (count + 1))
    return tuple(ratio ** -(i + 1) for i in range(count))


class Sequence:
    """Points of the unit cube, each next one where the ones before left room; what one drive or path does, in order."""

    def __init__(self, first: list[float]) -> None:
        self.first, self.number = first, 0

    def next(self) -> list[float]:
        """The next point."""
        self.number += 1
        return [(u + self.number * step) % 1.0 for u, step in zip(self.first, _steps(len(self.first)), strict=True)]


CELLS = (*(1 / 16 for _ in range(12)), 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256, 1 / 256)
"""Shares of the hours: finer towards 1, where the slowest are."""
FIRST_HOURS = 1.0
"""Greatest number of hours that a share of hours seems to have had before the first."""


class EvenHours:
    """Numbers in 0..1 for things of unequal length, such that the hours are spread evenly, not the things.

    Each thing goes where the hours given so far lack most, in units of the share that lacks them: a long one to a wide cell,
    and to a narrow one whatever rounds its hours off.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.given = [share * FIRST_HOURS * u for share, u in zip(CELLS, rng.random(len(CELLS)).tolist(), strict=True)]
        self.within = rng.random(len(CELLS)).tolist()
        self.total = 0.0

    def next(self, hours: float) -> float:
        """The number of the next thing, which lasts `hours`."""
        self.total += hours
        gains = [(2 * (share * self.total - given) - hours) / share for share, given in zip(CELLS, self.given, strict=True)]
        cell = gains.index(max(gains))
        self.given[cell] += hours
        self.within[cell] = (self.within[cell] + _steps(1)[0]) % 1.0
        return float(sum(CELLS[:cell]) + CELLS[cell] * self.within[cell])


class Plan:
    """Slowness still owed to the drives of one stratum, and the sequences that it takes its shapes from."""

    def __init__(self, first: "Sequence", after: "Sequence") -> None:
        self.owed_hours, self.first, self.after = 0.0, first, after


class Leveller:
    """Hands out ranks in 0..1 to things of different weight, so that every part of 0..1 gets its share of the weight.

    Of ten episodes one may hold half of all slow hours: dealt by count, how severe most slow hours are depends on that one.
    At each halving of 0..1 the half with less weight so far gets the next thing.
    """

    def __init__(self) -> None:
        self.surplus: dict[int, float] = {}

    def next(self, weight: float) -> float:
        """The rank of the next thing."""
        node = 1
        for _ in range(HALVINGS):
            # which half comes first is no matter, but not always the same one
            surplus = self.surplus.get(node, 1e-9 if node * 2654435761 >> 7 & 1 else -1e-9)
            is_upper = surplus < 0
            self.surplus[node] = surplus + max(weight, 1e-3) * (1 if is_upper else -1)
            node = 2 * node + is_upper
        return float((node - 2**HALVINGS + 0.5) / 2**HALVINGS)


class Clock:
    """Spreads slow hours evenly over the hours of the local day, as the paper finds them."""

    def __init__(self) -> None:
        self.slow_hours = [0.0] * 24

    def shift(self, hours: list[int], weight: float) -> int:
        """By how many hours, -12 to 11, something of slow `hours` (of local time) is moved to fill the emptiest hours of the day."""
        own = [0.0] * 24
        for hour in hours:
            own[hour % 24] += weight

        def unevenness(moved: int) -> float:
            return sum(had * own[(hour - moved) % 24] for hour, had in enumerate(self.slow_hours))

        best = min(sorted(range(-12, 12), key=abs), key=unevenness)
        self.slow_hours = [had + own[(hour - best) % 24] for hour, had in enumerate(self.slow_hours)]
        return best


class Dealer:
    """Hands out numbers in 0..1, spread evenly over all those of one kind who ask for the same trait in the same stratum.

    A fleet of 40 groups drawn independently may hold no group of a kind that one in 20 is, and its slow hours depend on how
    long the three longest episodes happen to be; such a fleet says little about the population. Any run of numbers dealt
    covers 0..1 without large gaps. They depend on who asked before and not on the seed: another seed has the same make-up
    in other places (`places`), and noise, loads and operators of its own. Each drive and group asks equally often whatever
    the parameters are: with a rate a little higher the same things happen, and a few more.
    """

    def __init__(self, seed: int, kind: Kind) -> None:
        self.seed, self.kind = seed, kind
        self.dealt: dict[tuple[Trait, int, int], tuple[int, tuple[float, ...]]] = {}
        self.hours: dict[tuple[Trait, int], EvenHours] = {}
        self.plans: dict[tuple[Trait, int], Plan] = {}
        self.run_of: dict[Trait, int] = {}
        self.levelled: dict[tuple[Trait, int], Leveller] = {}
        self.clock = Clock()

    def deal(self, trait: Trait, stratum: int = 0, count: int = 1) -> list[float]:
        """The next `count` numbers of `trait` among those of `stratum`."""
        key = trait, stratum, count
        if key not in self.dealt:
            self.dealt[key] = 0, tuple(self._stream(trait, stratum).random(count).tolist())
        number, shifts = self.dealt[key]
        self.dealt[key] = number + 1, shifts
        # a step of its own for every trait, or the widest groups would be the oldest
        steps = _steps(count) if count > 1 else (math.sqrt(PRIMES[trait]),)
        return [(shift + number * step) % 1.0 for shift, step in zip(shifts, steps, strict=True)]

    def deal_many(self, trait: Trait, count: int, dimensions: int) -> npt.NDArray[np.float64]:
        """The next `count` points of a sequence with several dimensions: an array of (dimension, point)."""
        first = self.run_of.get(trait, 0)
        self.run_of[trait] = first + count
        points: npt.NDArray[np.float64] = (np.arange(first, first + count) * np.asarray(_steps(dimensions))[:, None] + 0.5) % 1.0
        return points

    def level(self, trait: Trait, stratum: int, weight: float) -> float:
        """A rank for something of that weight, even by weight over all those of the same trait and stratum."""
        return self.levelled.setdefault((trait, stratum), Leveller()).next(weight)

    def plan(self, trait: Trait, stratum: int) -> Plan:
        """The plan of a stratum, the same for all who ask."""
        if (trait, stratum) not in self.plans:
            self.plans[trait, stratum] = Plan(
                Sequence(self.deal(trait, stratum, 4)), Sequence(self.deal(Trait.AFTERSHOCK, 100 * trait + stratum, 3))
            )
        return self.plans[trait, stratum]

    def count(self, trait: Trait, stratum: int, expected: float) -> int:
        """How often something happens that is expected to happen so often: the fleet's sum is about exact."""
        return math.floor(expected + self.deal(trait, stratum)[0])

    def over_hours(self, trait: Trait, stratum: int, hours: float) -> float:
        """The number of a thing that lasts `hours`, even over the hours of those of `stratum`."""
        key = trait, stratum
        if key not in self.hours:
            self.hours[key] = EvenHours(self._stream(trait, stratum))
        return self.hours[key].next(hours)

    def _stream(self, trait: Trait, stratum: int) -> np.random.Generator:
        return stream(MAKE_UP, self.kind, stratum, Purpose.EVEN, int(trait))
