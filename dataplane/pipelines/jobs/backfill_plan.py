"""Which keys each task of a backfill reads, and which entries each task writes. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from dataplane.region.format.key_range import KeyRange

PIECE_ROWS = 128 << 10
"""That one task reads and sorts at a time."""
OUTPUT_ENTRIES = 1 << 20
"""Of one file; a task has them in memory, and once more while it sorts them."""
OUTPUT_BYTES = 64 << 20
OUTPUT_ENTRIES_MIN = 64 << 10
"""A file is not made smaller so that more tasks have something to do."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a look at one file tells."""

    steps: tuple[tuple[bytes, int], ...]
    """A key of the file, and how many rows there are from it to the next of these, about."""
    samples: tuple[bytes, ...]
    """Keys of entries that some of its rows have."""


def cut_pieces(surveys: Iterable[Survey], piece_rows: int = PIECE_ROWS) -> tuple[KeyRange, ...]:
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


def cut_outputs(surveys: Iterable[Survey], rows: int, tasks_at_once: int) -> tuple[bytes, ...]:
    """Bounds between the entries of one file and of the next; entries with one key are never
    parted."""
    samples = sorted(sample for survey in surveys for sample in survey.samples)
    if not samples:
        return ()
    mean_bytes = sum(map(len, samples)) // len(samples)
    files = max(
        -(-rows // OUTPUT_ENTRIES),
        -(-rows * mean_bytes // OUTPUT_BYTES),
        min(tasks_at_once, rows // OUTPUT_ENTRIES_MIN),
        1,
    )
    bounds = (samples[len(samples) * number // files] for number in range(1, files))
    return tuple(dict.fromkeys(bound for bound in bounds if bound > samples[0]))
