"""Divides a backfill into tasks: the keys that each reads, and the entries that each writes.
Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.region.format.key_range import KeyRange

PIECE_ROWS = 256 << 10
"""The most rows that one task reads and sorts at a time. Starting a task costs as much as some
20,000 rows."""
PIECE_BYTES = 32 << 20
"""The most bytes of entry keys in a piece."""
OUTPUT_ENTRIES = 1 << 20
"""The most entries of one file; a task has them in memory, and once more while it sorts them."""
OUTPUT_BYTES = 64 << 20
OUTPUT_ENTRIES_MIN = 64 << 10
"""Files are not divided below it to give more tasks work."""


@dataclass(frozen=True, slots=True)
class Survey:
    """A sample of one file."""

    steps: tuple[tuple[bytes, int], ...]
    """Keys of the file, each with about the number of rows from it to the next one."""
    samples: tuple[bytes, ...]
    """Keys of entries that some of its rows have."""


def piece_rows(surveys: Sequence[Survey]) -> int:
    """Rows that one task may read at a time."""
    return max(min(PIECE_ROWS, PIECE_BYTES // max(_mean_bytes(surveys), 1)), 1)


def cut_pieces(surveys: Sequence[Survey], piece_rows: int) -> tuple[KeyRange, ...]:
    """Ranges of row keys that hold about so many rows each, and together every key."""
    steps = sorted(step for survey in surveys for step in survey.steps)
    starts = [b""]
    rows = 0
    for key, count in steps:
        if rows >= piece_rows and key > starts[-1]:
            starts.append(key)
            rows = 0
        rows += count
    ends: list[bytes | None] = [*starts[1:], None]
    return tuple(KeyRange(start, end) for start, end in zip(starts, ends, strict=True))


def cut_outputs(surveys: Sequence[Survey], rows: int, tasks_at_once: int) -> tuple[bytes, ...]:
    """Bounds between the entries of one file and of the next; entries with one key are never
    parted."""
    samples = sorted(sample for survey in surveys for sample in survey.samples)
    if not samples:
        return ()
    mean_bytes = _mean_bytes(surveys)
    files = max(
        -(-rows // OUTPUT_ENTRIES),
        -(-rows * mean_bytes // OUTPUT_BYTES),
        min(tasks_at_once, rows // OUTPUT_ENTRIES_MIN),
        1,
    )
    bounds = (samples[len(samples) * number // files] for number in range(1, files))
    return tuple(dict.fromkeys(bound for bound in bounds if bound > samples[0]))


def _mean_bytes(surveys: Sequence[Survey]) -> int:
    """The mean size of an entry's key, in bytes; 0: there are no samples."""
    samples = [len(sample) for survey in surveys for sample in survey.samples]
    return sum(samples) // max(len(samples), 1)
