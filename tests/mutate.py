"""Deliveries nearly as they should be, for fuzzing: bytes and JSON values of a good one dropped, replaced, repeated or cut off."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

# written as no JSON writer would: Python refuses to write, and to read, whole numbers of this length
_DIGITS = "<digits>"
_VALUES: list[Any] = [
    None, True, False, 0, -1, 1.5, 2**31, 2**53 + 1, 2**63, 10**19, 10**400, -(10**400), 1e308, math.nan, math.inf, -math.inf,
    "", " ", "x", "0", "-1", "1e999", "nan", "\ud800", "\0", "\n", "²", "9" * 25, "9" * 5000, _DIGITS, "0001-01-01", "9999-12-31",
    [], {}, [None], [[]], {"": None}, ["x", "x"], [-1], [300],
]  # fmt: skip
_PIECES = [
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r\n", b",", b";", b" ", b'"', b"[", b"]", b"{", b"}", b":", b"=", b"-", b".", b"0", b"-1",
    b"1e999", b"NaN", b"inf", b"null", b"\\ud800", b"9" * 20, b"9" * 400, b"9" * 5000, "²".encode(), b"TS", b"0001-01-01", b"9999-12-31",
]  # fmt: skip


def mutated(good: bytes) -> SearchStrategy[bytes]:
    """A text with pieces dropped, put in the place of others, repeated, or all from somewhere on cut off."""
    place = st.integers(0, len(good))
    change = st.tuples(
        st.sampled_from(["drop", "replace", "insert", "repeat", "drop line", "repeat line", "cut"]),
        place,
        st.integers(1, 12),
        st.sampled_from(_PIECES),
    )
    return st.lists(change, min_size=1, max_size=4).map(lambda changes: _changed_bytes(good, changes))


def _changed_bytes(good: bytes, changes: Sequence[tuple[str, int, int, bytes]]) -> bytes:
    for what, start, length, piece in changes:
        begin, end = start, start + length
        if what.endswith("line"):
            begin = good.rfind(b"\n", 0, start) + 1
            end = good.find(b"\n", start) + 1 or len(good)
        taken = good[begin:end]
        put = {"replace": piece, "insert": piece + taken, "repeat": taken * 2, "repeat line": taken * 2}.get(what, b"")
        good = good[:begin] + put + (b"" if what == "cut" else good[end:])
    return good


def mutated_json(good: Any) -> SearchStrategy[bytes]:
    """A document with values dropped, repeated, or in the place of others those that nobody expects; now and then its text is torn too."""
    places = list(_places(good))
    values = [path for path in places if not any(other[: len(path)] == path for other in places if len(other) > len(path))]
    change = st.tuples(
        st.sampled_from([*values * 4, *places]), st.sampled_from(["drop", "repeat", *["replace"] * 6]), st.sampled_from(_VALUES)
    )
    documents = st.lists(change, min_size=2, max_size=8).map(lambda changes: _changed_json(good, changes))
    return st.one_of(documents, mutated(json.dumps(good).encode()))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _places(below, (*path, key))


def _changed_json(good: Any, changes: Sequence[tuple[tuple[Any, ...], str, Any]]) -> bytes:
    root = {"": copy.deepcopy(good)}
    for path, what, value in changes:
        holder: Any = root
        *way, last = ("", *path)
        try:
            for key in way:
                holder = holder[key]
            if what == "drop":
                del holder[last]
            elif what == "repeat" and isinstance(holder, list):
                holder.insert(last, holder[last])
            else:
                holder[last] = [holder[last]] * 2 if what == "repeat" else copy.deepcopy(value)
        except (LookupError, TypeError):  # an earlier change took the place away
            continue
    return json.dumps(root.get("")).replace(f'"{_DIGITS}"', "9" * 5000).encode()
