"""Divides a load into tasks: the input rows that each reads, and the file that each writes.
Pure."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise

from metasrv_base.errors import Refused

PIECE_ROWS = 256 << 10
"""The rows at which a piece is complete; row groups stay whole, and are read some rows at a
time."""
SAMPLE_ROWS = 4096
"""Rows that each sample stands for."""
OUTPUT_ROWS = 1 << 20
"""The most rows of one file; a task has them in memory, and once more while it sorts them."""
OUTPUT_BYTES = 128 << 20
"""The most bytes of one file, before compression."""
OUTPUT_ROWS_MIN = 64 << 10
"""Files are not divided below it to give more tasks work."""
FILES_MAX = 2048
"""The most files of one load: the record of its procedure lists them."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file by its footer and its entry in the folder."""

    path: str
    bytes: int
    modified_ns: int
    groups: tuple[int, ...]
    """Rows of each row group."""
    raw_bytes: int
    """Bytes of the decoded rows."""

    @property
    def rows(self) -> int:
        return sum(self.groups)


@dataclass(frozen=True, slots=True)
class Piece:
    """Row groups of one file, or some rows of them."""

    number: int
    file: InputFile
    groups: tuple[int, ...]
    first: int = 0
    """Rows of the groups that another piece has before it."""
    rows: int | None = None
    """The number of rows to load; None for all."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A row, standing for SAMPLE_ROWS."""

    region: int
    key: bytes


@dataclass(frozen=True, slots=True)
class Outputs:
    """Files to be written: some for each region, in order of keys."""

    bounds: Mapping[int, tuple[bytes, ...]]
    """Keys between the rows of one file and of the next, by region."""
    first: Mapping[int, int]
    """The number of a region's first file, by region."""

    @property
    def count(self) -> int:
        return sum(len(bounds) + 1 for bounds in self.bounds.values())

    @property
    def regions(self) -> Sequence[int]:
        """The region of each file."""
        return [region for region, bounds in self.bounds.items() for _ in range(len(bounds) + 1)]


def digest_of(files: Iterable[InputFile]) -> str:
    """A digest of the files' paths, sizes, times of change and row groups, which tells whether they
    have changed."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        digest.update(f"{file.path}\0{file.bytes}\0{file.modified_ns}\0{file.groups}\0".encode())
    return digest.hexdigest()


def cut_pieces(files: Iterable[InputFile], piece_rows: int = PIECE_ROWS) -> tuple[Piece, ...]:
    """All row groups, each once."""
    pieces: list[Piece] = []
    for file in files:
        groups: list[int] = []
        for group in range(len(file.groups)):
            groups.append(group)
            if sum(file.groups[number] for number in groups) >= piece_rows:
                pieces.append(Piece(len(pieces), file, tuple(groups)))
                groups = []
        if groups:
            pieces.append(Piece(len(pieces), file, tuple(groups)))
    return tuple(pieces)


def straight_pieces(files: Sequence[InputFile], tasks_at_once: int) -> tuple[Piece, ...]:
    """Pieces that become one file each, if their rows are in order. None, where order is unlikely:
    rows of several files often lie between each other."""
    if len(files) != 1 or not files[0].rows:
        return ()
    (file,) = files
    count = _files_for(file.rows, files, tasks_at_once)
    if count > FILES_MAX:
        return ()
    cuts = [file.rows * number // count for number in range(count + 1)]
    return tuple(_piece(number, file, *cut) for number, cut in enumerate(pairwise(cuts)))


def _piece(number: int, file: InputFile, start: int, end: int) -> Piece:
    """The rows from *start* up to *end*, of the row groups that have them."""
    ends = list(accumulate(file.groups))
    low, high = bisect_right(ends, start), bisect_left(ends, end)
    before = ends[low] - file.groups[low]
    return Piece(number, file, tuple(range(low, high + 1)), start - before, end - start)


def needs_samples(files: Sequence[InputFile], tasks_at_once: int) -> bool:
    """Whether any region could have more files than one."""
    return _files_for(sum(file.rows for file in files), files, tasks_at_once) > 1


def cut_outputs(
    regions: Iterable[int],
    samples: Iterable[Sample],
    files: Sequence[InputFile],
    tasks_at_once: int,
) -> Outputs:
    """Rows with one key are never parted. Raises Refused `ddl-too-large` for too many files."""
    keys = {
        region: sorted(sample.key for sample in some)
        for region, some in groupby(
            sorted(samples, key=lambda sample: sample.region), key=lambda sample: sample.region
        )
    }
    bounds, first, count = {}, {}, 0
    for region in sorted(regions):
        region_keys = keys.get(region, [])
        share = -(-tasks_at_once * len(region_keys) // max(1, sum(map(len, keys.values()))))
        outputs = _files_for(len(region_keys) * SAMPLE_ROWS, files, share)
        cuts = (region_keys[len(region_keys) * number // outputs] for number in range(1, outputs))
        bounds[region] = tuple(dict.fromkeys(cut for cut in cuts if cut > region_keys[0]))
        first[region] = count
        count += len(bounds[region]) + 1
    if count > FILES_MAX:
        raise Refused("ddl-too-large", needs=f"{count} files", limit=f"{FILES_MAX} files")
    return Outputs(bounds, first)


def _files_for(rows: int, files: Sequence[InputFile], tasks_at_once: int) -> int:
    mean_bytes = sum(file.raw_bytes for file in files) // max(1, sum(file.rows for file in files))
    return max(
        -(-rows // OUTPUT_ROWS),
        -(-rows * mean_bytes // OUTPUT_BYTES),
        min(tasks_at_once, rows // OUTPUT_ROWS_MIN),
        1,
    )
