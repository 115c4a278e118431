"""Text that goes into notes and columns. Nothing heavy is imported: `status` lists what is quarantined."""

from __future__ import annotations


def one_line(error: BaseException) -> str:
    """The first line of an error's text, shortened: what fits into a note."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]


def utf8(text: str) -> str:
    """JSON may escape half a surrogate pair, which no UTF-8 text can hold: each becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")
