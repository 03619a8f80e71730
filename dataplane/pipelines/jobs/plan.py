"""Plans a move: copies a borrowed input as it is, or rewrites it with others."""

from dataclasses import dataclass

from dataplane.region.format.columns import ColumnDef, columns_told
from dataplane.region.format.families import ROWS, columns_in
from metasrv_base.wire.node.inputs import Borrowed, BorrowedFile, SealedSegment

SMALL_FILE_BYTES = 1 << 20  # opening and looking into a file costs about as much as reading this
OUTPUT_FILE_BYTES = 64 << 20  # of input for one rewritten file: two usual memtables

RewriteInput = BorrowedFile | SealedSegment


@dataclass(frozen=True, slots=True)
class RowFamily:
    """Rows of one kind: the table's, or the entries of an index."""

    number: int
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True, slots=True)
class MovePlan:
    copies: tuple[BorrowedFile, ...]
    rewrites: tuple[RewriteInput, ...]
    families: tuple[RowFamily, ...]
    marks: tuple[int, ...]

    @property
    def copied_bytes(self) -> int:
        return sum(map(input_bytes, self.copies))

    @property
    def rewritten_bytes(self) -> int:
        return sum(map(input_bytes, self.rewrites))

    @property
    def bytes(self) -> int:
        return self.copied_bytes + self.rewritten_bytes

    def outputs(self, rows: int, of: int) -> int:
        """Into how many ranges of keys so many of the rewritten rows are cut."""
        return 1 + self.rewritten_bytes * rows // of // OUTPUT_FILE_BYTES


def plan_move(borrowed: Borrowed) -> MovePlan:
    """Files are copied, since that is five times as fast as rewriting them, and segments of the
    log are rewritten; small files go with them, unless there is nothing to merge one with. What
    belongs to an index that is gone is left behind."""
    columns = columns_told(borrowed.columns)
    families = [RowFamily(n, tuple(columns_in(n, columns))) for n in (ROWS, *borrowed.indexes)]
    files = [source for source in borrowed.files if source.file.family in (ROWS, *borrowed.indexes)]
    small = [source for source in files if source.file.bytes < SMALL_FILE_BYTES]
    if len(small) + len(borrowed.segments) < 2:
        small = []
    return MovePlan(
        copies=tuple(source for source in files if source not in small),
        rewrites=(*borrowed.segments, *small),
        families=tuple(families),
        marks=tuple(borrowed.marks),
    )


def input_bytes(source: RewriteInput) -> int:
    return source.file.bytes if isinstance(source, BorrowedFile) else source.bytes
