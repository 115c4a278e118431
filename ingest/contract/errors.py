"""The errors of ingest."""

from __future__ import annotations


class IngestError(ValueError):
    """The call itself is wrong (unknown source, no such path, nothing of that source in it); nothing was landed."""


class ServerError(IngestError):
    """A server cannot be reached, refuses, or answers what is no answer; the call may be right."""


class GateError(RuntimeError):
    """The gate cannot look (a suite that is wrong, Great Expectations missing), or a quarantined delivery cannot be kept, found,
    released or dropped. The message says why and what to do; nothing has changed.
    """


class StoreError(RuntimeError):
    """Raw cannot be written or read: no room, no memory, a damaged file; nothing of the call has landed. The message says what to do."""


class UnreadableFile(Exception):
    """One delivered file cannot be read; it lands nothing, the other files of the call are taken.

    The message is one sentence that names what was expected and what was found, without the file's path.
    """
