"""Files that are packed, known by their first bytes: what a file is called says nothing of what a program wrote into it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa

from ingest.contract.errors import UnreadableFile
from ingest.reading.limits import too_large, unpacked_limit
from ingest.reading.text import one_line
from lab.contract import UNREADABLE, Refused

GZIP, ZSTD, LZ4, LZ4_BLOCKS = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"LZ4Block"
"""Spark writes LZ4 in blocks of its own, lz4 in frames."""
SUFFIXES = {GZIP: ".gz", ZSTD: ".zst"}
NOT_READ = {
    b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x82SNAPPY\x00": "Spark's codec snappy", b"ZV\x00": "Spark's codec lzf",
    b"ZV\x01": "Spark's codec lzf",
}  # fmt: skip
_BLOCK_BYTES = 1 << 20
_HEAD_BYTES = 21
"""Head of a block of Spark: its mark, how it is packed, its sizes, and a checksum."""
_MOST_BLOCK_BYTES = 64 << 20


@contextmanager
def readable(path: Path) -> Iterator[Path]:
    """The same file under a name whose suffix says how it is packed, as the readers of text go by. Raises: Refused."""
    with path.open("rb") as stream:
        head = stream.read(8)
    for mark, name in NOT_READ.items():
        if head.startswith(mark):
            raise Refused(UNREADABLE, f"it is packed by {name}; unpack it, or pack it with gzip, zstd or lz4")
    suffix = next((suffix for mark, suffix in SUFFIXES.items() if head.startswith(mark)), "")
    is_lz4 = head.startswith((LZ4, LZ4_BLOCKS))
    if not is_lz4 and suffix == next((name for name in SUFFIXES.values() if path.name.lower().endswith(name)), ""):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="drivetail-lab-") as folder:
        named = Path(folder) / f"output{suffix}"
        if is_lz4:
            _unpack_lz4(path, named)
        else:
            named.symlink_to(path.resolve())
        yield named


def _unpack_lz4(path: Path, to: Path) -> None:
    limit = unpacked_limit(path)
    try:
        with path.open("rb") as source, to.open("wb") as sink:
            blocks = _blocks(source) if source.read(len(LZ4_BLOCKS)) == LZ4_BLOCKS else _frames(path)
            for block in blocks:
                if sink.tell() + len(block) > limit:
                    raise UnreadableFile(too_large("the file", limit))
                sink.write(block)
    except (OSError, EOFError, ValueError, pa.ArrowException, UnreadableFile) as error:
        raise Refused(UNREADABLE, f"its LZ4 cannot be unpacked: {one_line(error)}; is it cut off?") from error


def _frames(path: Path) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.OSFile(str(path)), "lz4") as stream:
        while block := stream.read(_BLOCK_BYTES):
            yield block


def _blocks(source: IO[bytes]) -> Iterator[bytes]:
    """Blocks of Java's LZ4BlockOutputStream. A log whose application still runs, or was killed, ends without the last, empty block."""
    codec = pa.Codec("lz4_raw")
    source.seek(0)
    while head := source.read(_HEAD_BYTES):
        packed_bytes, plain_bytes = (int.from_bytes(head[place : place + 4], "little") for place in (9, 13))
        if len(head) < _HEAD_BYTES or head[:8] != LZ4_BLOCKS or max(packed_bytes, plain_bytes) > _MOST_BLOCK_BYTES:
            raise ValueError("no block where one should begin")
        packed = source.read(packed_bytes)
        if len(packed) < packed_bytes:
            raise EOFError("the last block is not whole")
        if plain_bytes:
            yield packed if head[8] & 0xF0 == 0x10 else codec.decompress(packed, plain_bytes, asbytes=True)
