"""The policies: when a full-stripe read completes, and how many parity blocks are read for it.

A stripe is N data blocks, P and, with two parities, Q. Any N of the blocks read rebuild it, so a read that also asks for k parity blocks
completes with the (k + 1)-th slowest of all of them. Times are multiples of the base latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
Counts = NDArray[np.int8]

POLICIES = ("none", "reactive", "proactive1", "proactive2", "adaptive")
"""Read no parity; read it for drives that are late; read P always; read P and Q always; read it ahead for drives that keep being late."""


@dataclass(frozen=True)
class Served:
    """Requests under one policy: their completions, parity blocks read, and those of them that were read at time 0."""

    completions: Times
    extra_reads: Counts
    proactive_reads: Counts


@dataclass
class Policies:
    """The policies of one RAID group. They remember, from one call of `serve` to the next, how often in a row each drive was late.

    st: a block is late that takes at least so long, and is then rebuilt. sr: late requests in a row before a drive counts as offending.
    """

    data_drives: int
    parity: int = 2
    st: float = 2.0
    sr: int = 3
    names: Sequence[str] = POLICIES
    _late_in_a_row: list[int] = field(default_factory=list)

    def serve(self, data: Times, parity: Times, shift: NDArray[np.int64] | None = None) -> dict[str, Served | None]:
        """Serve requests in their order under each policy; None where it needs more parities than there are.

        data, parity: when each block of each request is there, counted from its read; a row for each role, a column for each request.
        shift: role r of a request is the drive r + shift, modulo the number of drives; None: drives keep their roles.
        """
        slowest = largest_three(data)
        late = data >= self.st
        late_count = np.minimum(late.sum(axis=0, dtype=np.int8), np.int8(self.parity))
        none = np.zeros_like(late_count)
        ahead = self._ahead(late, shift) if "adaptive" in self.names else none
        reads = {
            "none": (none, none),
            "reactive": (none, late_count),
            "proactive1": (none + np.int8(1), none),
            "proactive2": (none + np.int8(2), none) if self.parity == 2 else None,
            "adaptive": (ahead, np.maximum(late_count - ahead, np.int8(0))),
        }
        return {name: self._served(slowest, parity, reads[name]) for name in self.names}

    def _served(self, slowest: tuple[Times, Times, Times], parity: Times, reads: tuple[Counts, Counts] | None) -> Served | None:
        """Requests of which some parities are read at time 0, P first, and others once data are late."""
        if reads is None:
            return None
        ahead, after = reads
        extra = ahead + after
        back = [np.where(ahead > i, block, np.where(extra > i, block + self.st, np.inf)) for i, block in enumerate(parity)]
        return Served(completion(slowest, back), extra, ahead)

    def _ahead(self, late: NDArray[np.bool_], shift: NDArray[np.int64] | None) -> Counts:
        """How many parities the adaptive policy reads at time 0: one for each offending drive that holds data of the request."""
        drives = self.data_drives + self.parity
        self._late_in_a_row = self._late_in_a_row or [0] * drives
        offending = np.zeros(late.shape[1], dtype=np.int8)
        for drive in range(self.data_drives if shift is None else drives):
            if shift is None:
                is_offending, self._late_in_a_row[drive] = offends(late[drive], self._late_in_a_row[drive], self.sr)
                offending += is_offending
            else:
                # only requests that read the drive show how it is
                role = (drive - shift) % drives
                (at,) = np.nonzero(role < self.data_drives)
                is_offending, self._late_in_a_row[drive] = offends(late[role[at], at], self._late_in_a_row[drive], self.sr)
                offending[at] += is_offending
        return np.minimum(offending, np.int8(self.parity))


def offends(late: NDArray[np.bool_], before: int, sr: int) -> tuple[NDArray[np.bool_], int]:
    """In which requests a drive is offending: it was late in each of the `sr` before. before: late in a row up to the first of them.

    Returns: that, and how often in a row it is late at the end.
    """
    count = len(late)
    if count == 0:
        return late, before
    last_in_time = np.arange(count)
    last_in_time[late] = -1 - before
    np.maximum.accumulate(last_in_time, out=last_in_time)
    in_a_row = np.arange(count) - last_in_time
    is_offending = np.empty(count, dtype=bool)
    is_offending[0] = before >= sr
    is_offending[1:] = in_a_row[:-1] >= sr
    return is_offending, int(in_a_row[-1])


def largest_three(rows: Times) -> tuple[Times, Times, Times]:
    """The three largest of each column, largest first; minus infinity for those there are not. At most two drives can be masked."""
    first = np.full(rows.shape[1], -np.inf)
    second, third = first.copy(), first.copy()
    for row in rows:
        smaller = np.minimum(first, row)
        np.maximum(first, row, out=first)
        smallest = np.minimum(second, smaller)
        np.maximum(second, smaller, out=second)
        np.maximum(third, smallest, out=third)
    return first, second, third


def completion(slowest: tuple[Times, Times, Times], parity: Sequence[Times]) -> Times:
    """When N blocks of a stripe are there: the (k + 1)-th largest of the data blocks and k parity blocks.

    slowest: the three slowest data blocks. parity: when each parity block is there; infinity for one that is not read.
    """
    first, second, third = slowest
    if len(parity) == 1:
        return np.maximum(second, np.minimum(first, parity[0]))
    later, sooner = np.maximum(*parity), np.minimum(*parity)
    return np.maximum(third, np.maximum(np.minimum(second, later), np.minimum(first, sooner)))
