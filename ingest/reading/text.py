"""Text that goes into notes and columns. Nothing heavy is imported: `status` lists what is quarantined."""

from __future__ import annotations

import os
import re
import unicodedata

HIDDEN = {"Cc", "Cf", "Zl", "Zp"}
"""Categories of Unicode of control characters, invisible ones that turn the direction of text, and separators of lines."""


def one_line(error: BaseException) -> str:
    """The first line of an error's text, shortened: what fits into a note."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]


def utf8(text: str) -> str:
    """JSON may escape half a surrogate pair, which no UTF-8 text can hold: each becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def in_sight(text: str, allowed: str = "") -> str:
    """A text that somebody else wrote: what a terminal obeys or does not show is escaped, such as `\\x1b` and `\\n`.

    allowed: characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in HIDDEN | {"Cs"} and c not in allowed else c for c in text)


DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of the text after them."""


def in_order(text: object) -> object:
    """A text for a page, in which nothing turns the direction of what stands beside it; other values as they are."""
    return DIRECTION.sub(lambda found: _escaped(found[0]), text) if type(text) is str else text


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def file_name(path: str | os.PathLike[str]) -> str:
    """A path as text that can be kept: bytes of it that are not UTF-8 are escaped, such as `\\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
