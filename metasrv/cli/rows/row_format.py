"""Formats of rows that programs read, and the ending of a file that means each."""

from enum import StrEnum


class RowFormat(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    NDJSON = "ndjson"
    ARROW = "arrow"


ENDINGS = {
    ".parquet": RowFormat.PARQUET,
    ".csv": RowFormat.CSV,
    ".ndjson": RowFormat.NDJSON,
    ".jsonl": RowFormat.NDJSON,
    ".arrow": RowFormat.ARROW,
}
GZIP = ".gz"
STDIN = "-"
