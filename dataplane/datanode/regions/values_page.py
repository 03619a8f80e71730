"""The messages of one answer of a scan of values."""

import pyarrow as pa

from dataplane.datanode.regions.row_answers import nothing_of
from dataplane.region.reads.value_scan import ValueRows
from metasrv_base.rows.arrow_parts import ArrowParts
from metasrv_base.wire.node.batches import NEXT_KEY


class ValuesPage:
    """An Arrow stream of values up to a bound of rows, and one of bytes; None: no such bound. It
    may exceed each by a part. It keeps no part that it was given."""

    def __init__(self, rows: int, size_bytes: int | None) -> None:
        self._rows = rows
        self._bytes = size_bytes
        self._stream: ArrowParts | None = None

    @property
    def is_full(self) -> bool:
        return self._rows <= 0 or (self._bytes is not None and self._bytes <= 0)

    def count(self, part: ValueRows) -> None:
        """Called before `message`, so that it is known whether there will be another part."""
        self._rows -= part.rows.num_rows
        if self._bytes is not None:
            self._bytes -= part.rows.nbytes

    def message(self, part: ValueRows) -> bytes:
        self._stream = self._stream or ArrowParts(part.rows.schema)
        return self._stream.part(part.rows)

    def mark(self, following: bytes) -> bytes:
        """The message that ends a full page: rows from the key *following* on are not in it."""
        assert self._stream is not None, "a page without rows is not full"
        rows = nothing_of(self._stream.schema)
        return self._stream.marked(rows, {NEXT_KEY: following.hex().encode()})

    def end(self, schema: pa.Schema) -> bytes:
        """Returns the end of the stream. *schema* is used if the page has no rows."""
        return (self._stream or ArrowParts(schema)).end()
