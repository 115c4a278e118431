"""Why an engine gave up on files of the warehouse: no room, no memory, or a file that is not as it was landed; and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

NO_ROOM = ("no space left", "file too large", "disk quota exceeded")
FOOTER_CUT_OFF = "thrift: transport error"
"""Polars' messages where the room ends within a Parquet file's footer; of a damaged one, too."""
NO_MEMORY = ("out of memory", "cannot allocate memory", "bad_alloc", "failed to allocate")
READ_WELL = ("rows break it", "row breaks it")
"""An engine's messages about data that break a law: they could be read."""


class Shortage(str):
    """The advice where room or memory is short: trying again may help."""


def explained(error: BaseException, warehouse: Path, files: Iterable[Path]) -> str | None:
    """Meaning of an engine's error, with advice; null for an error of another sort.

    files: those of raw that it read; they are read again, whole, only where the error names neither room nor memory.
    """
    why: str | None = _shortage(error, warehouse)
    if why is not None or any(words in str(error).lower() for words in READ_WELL):
        return why
    for path in files:
        why = damage(path)
        if why is not None:
            hint = "put it back from a copy, or make it again from what was delivered (docs/runbooks/damaged-raw.md)"
            return f"{path}: cannot be read ({why}); {hint}"
    return _no_room(error, warehouse) if FOOTER_CUT_OFF in str(error).lower() else None


def _shortage(error: BaseException, warehouse: Path) -> Shortage | None:
    """Whether an engine's error means that room or memory is short, and what to do; null for an error of another sort."""
    text = str(error).lower()
    if any(sign in text for sign in NO_ROOM):
        return _no_room(error, warehouse)
    if isinstance(error, MemoryError) or any(sign in text for sign in NO_MEMORY):
        return Shortage(
            f"{warehouse}: not enough memory ({_in_short(error)}); give it more, such as DRIVETAIL_MEMORY_LIMIT=8GB, then run it again: "
            f"nothing is lost{_what_readers_see(warehouse)} (docs/runbooks/no-memory.md)"
        )
    return None


def _no_room(error: BaseException, warehouse: Path) -> Shortage:
    return Shortage(
        f"{warehouse}: no room on the disk ({_in_short(error)}); make room, then run it again: nothing is lost"
        f"{_what_readers_see(warehouse)} (docs/runbooks/no-room.md)"
    )


def _what_readers_see(warehouse: Path) -> str:
    return ", readers see the last publication" if (warehouse / "warehouse.duckdb").exists() else ""


def damage(path: Path) -> str | None:
    """Why a Parquet file cannot be read; null where every value of it can."""
    # here, since every build would pay for the import and few meet damage
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches():  # a day of a large fleet need not fit into memory
                pass
    except (OSError, pa.ArrowException) as error:
        return _in_short(error)
    return None


def _in_short(error: BaseException) -> str:
    """The first line of the error that began it, without advice for other causes; what an engine says after it repeats the query."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
