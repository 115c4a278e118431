"""The policies of ToleRAID one request after the other, in plain Python, written from the paper's words: without lab/toleraid/."""

from __future__ import annotations

Served = tuple[float, int]


def nth_smallest(blocks: list[float], n: int) -> float:
    return sorted(blocks)[n - 1]


def none(data: list[float]) -> Served:
    return max(data), 0


def reactive(data: list[float], parity: list[float], st: float) -> Served:
    late = sum(1 for time in data if time >= st)
    read = min(late, len(parity))
    return nth_smallest(data + [st + time for time in parity[:read]], len(data)), read


def proactive(data: list[float], parity: list[float], count: int) -> Served:
    return nth_smallest(data + parity[:count], len(data)), count


class Adaptive:
    """Remembers of each drive in which of the requests that read it, the latest last, it was late."""

    def __init__(self, drives: int, st: float, sr: int) -> None:
        self.history: list[list[bool]] = [[] for _ in range(drives)]
        self.st, self.sr = st, sr

    def serve(self, data: list[float], parity: list[float], drives: list[int]) -> tuple[float, int, int]:
        """drives: which holds each data block. Returns: completion, parities read, and those read at time 0."""
        offending = [drive for drive in drives if len(self.history[drive]) >= self.sr and all(self.history[drive][-self.sr :])]
        ahead = min(len(offending), len(parity))
        late = [time >= self.st for time in data]
        after = max(0, min(sum(late), len(parity)) - ahead)
        blocks = data + parity[:ahead] + [self.st + time for time in parity[ahead : ahead + after]]
        for drive, is_late in zip(drives, late, strict=True):
            self.history[drive].append(is_late)
        return nth_smallest(blocks, len(data)), ahead + after, ahead


def serve(requests: list[tuple[list[float], list[float]]], st: float, sr: int, shifts: list[int] | None = None) -> dict[str, list[Served]]:
    """Every policy over requests of (data, parity). shifts: how far the roles of each are from the drives'."""
    width, parities = len(requests[0][0]), len(requests[0][1])
    adaptive = Adaptive(width + parities, st, sr)
    found: dict[str, list[Served]] = {name: [] for name in ("none", "reactive", "proactive1", "proactive2", "adaptive")}
    for number, (data, parity) in enumerate(requests):
        shift = shifts[number] if shifts else 0
        found["none"].append(none(data))
        found["reactive"].append(reactive(data, parity, st))
        found["proactive1"].append(proactive(data, parity, 1))
        if parities == 2:
            found["proactive2"].append(proactive(data, parity, 2))
        found["adaptive"].append(adaptive.serve(data, parity, [(role + shift) % (width + parities) for role in range(width)])[:2])
    return found
