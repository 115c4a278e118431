"""Bundle files in each of the formats, the same bytes for the same rows."""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, get_args

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

FileFormat = Literal["parquet", "csv", "csv.gz", "csv.zst", "ndjson"]
FILE_FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"


class RecordFile:
    """One file of records, written a frame at a time; it appears under its name when it is complete."""

    def __init__(self, path: Path, file_format: FileFormat) -> None:
        self.path, self.file_format = path, file_format
        self.partial = path.with_name(f".{path.name}.partial")
        self.parquet: pq.ParquetWriter | None = None
        self.stream: pa.NativeFile | None = None
        self.row_count = 0

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.file_format != "parquet":
            codec = {"csv.gz": "gzip", "csv.zst": "zstd"}.get(self.file_format)
            self.stream = pa.output_stream(self.partial, compression=codec)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for opened in (self.parquet, self.stream):
            if opened is not None:
                opened.close()
        if kind is None:
            self.partial.replace(self.path)
        else:
            self.partial.unlink(missing_ok=True)

    def write(self, frame: pl.DataFrame) -> None:
        """Append the rows of `frame`."""
        if self.stream is None:
            table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            if self.parquet is None:
                # statistics on floats and ids help no reader of so small files; dictionaries of ids do
                self.parquet = pq.ParquetWriter(self.partial, table.schema, compression="zstd", compression_level=1)
            self.parquet.write_table(table)
        elif self.file_format == "ndjson":
            times = [name for name, kind in frame.schema.items() if kind == pl.Datetime("us")]
            text = frame.with_columns(pl.col(times).dt.strftime(TIME_FORMAT)) if times else frame
            self.stream.write(text.write_ndjson().encode())
        else:
            text_csv = frame.write_csv(include_header=self.row_count == 0, datetime_format=TIME_FORMAT)
            self.stream.write(text_csv.encode())
        self.row_count += frame.height


def write_records(path: Path, file_format: FileFormat, parts: Iterable[pl.DataFrame]) -> int:
    """Write the rows of `parts` to `path`; returns how many. An empty sequence of parts writes no file."""
    with RecordFile(path, file_format) as out:
        for part in parts:
            out.write(part)
    return out.row_count
