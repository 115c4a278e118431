"""When requests arrive, and which drive has which role in each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from lab.toleraid.policies import Times

CHUNK_BYTES = 4096
"""Part of a stripe on each drive."""


class Layout(StrEnum):
    """Whether the role of a drive is the same in every stripe."""

    FIXED = "fixed"
    ROTATING = "rotating"


@dataclass(frozen=True)
class Requests:
    """Full-stripe reads in order: seconds from the first one, and the stripe where each begins. `partial`: reads of fewer drives."""

    times: Times
    stripes: NDArray[np.int64]
    partial: int = 0


@dataclass(frozen=True)
class Arrivals:
    """Made-up requests: how many, how many a minute, and whether at random times (`poisson`) or evenly (`regular`)."""

    requests: int = 400_000
    per_minute: float = 52.0
    kind: str = "poisson"

    def draw(self, random: np.random.Generator) -> Requests:
        """The requests; each begins at a random stripe."""
        gaps = random.standard_exponential(self.requests) if self.kind == "poisson" else np.ones(self.requests)
        times = np.cumsum(gaps) * (60 / self.per_minute)
        return Requests(times - times[0], random.integers(0, 1 << 32, self.requests))


def full_stripe_reads(times: Times, offsets: NDArray[np.int64], lengths: NDArray[np.int64], data_drives: int) -> Requests:
    """Those reads of a trace that touch every data drive, in order of time."""
    first, last = offsets // CHUNK_BYTES, (offsets + lengths - 1) // CHUNK_BYTES
    is_full = last - first + 1 >= data_drives
    order = np.argsort(times[is_full], kind="stable")
    of_full = times[is_full][order]
    return Requests(of_full - of_full[:1], (first // data_drives)[is_full][order], int(np.count_nonzero(~is_full)))
