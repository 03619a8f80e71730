"""Applied statements, packed: 36 bytes for each and an index of 4-byte places, in order of arrival.

A record, little-endian: a 16-byte digest of the statement's id, its row version, the time at which
its first sender made it (milliseconds), its rows. Files hold the same bytes (statement_files.py).
"""

import struct
import sys
from array import array
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

DIGEST_BYTES = 16
RECORDS_MAX = 1 << 17
"""Records of one table: bounds the time that its index takes to grow."""
HEADS_MIN = 16
_RECORD = struct.Struct(f"<{DIGEST_BYTES}sQQI")
_FIELDS = np.dtype(
    {
        "names": ["hash", "sent_ms"],
        "formats": ["<u4", "<u8"],
        "offsets": [0, DIGEST_BYTES + 8],
        "itemsize": _RECORD.size,
    }
)
RECORD_BYTES = _RECORD.size


class Remembered(NamedTuple):
    """A statement that was applied, so that a repeat is given the first answer."""

    version: int
    sent_ms: int
    rows: int


def digest_of(statement_id: str) -> bytes:
    return blake2b(statement_id.encode(), digest_size=DIGEST_BYTES).digest()


class StatementTable:
    """Grows only. One thread adds; others may copy records that are there.

    `_heads` has the newest record of each chain, and `_nexts` the one before each record; both
    count from 1, and 0 ends a chain.
    """

    def __init__(self, records: bytes = b"") -> None:
        """Loads *records*, as `records()` returned them."""
        assert len(records) % RECORD_BYTES == 0, "records are whole"
        self._records = bytearray(records)
        self._nexts = array("I")
        self._heads = array("I")
        self.first_ms = 0
        """The time of the first record; 0: there is none."""
        self.latest_ms = 0
        """The latest time of a record."""
        if records:
            times = np.frombuffer(records, _FIELDS)["sent_ms"]
            self.first_ms, self.latest_ms = int(times[0]), int(times.max())
        self._grow()

    def __len__(self) -> int:
        return len(self._records) // RECORD_BYTES

    @property
    def size_bytes(self) -> int:
        """Memory that the table takes."""
        return sum(map(sys.getsizeof, (self._records, self._nexts, self._heads)))

    def find(self, digest: bytes) -> Remembered | None:
        slot = self._heads[self._chain(digest)]
        while slot:
            record = _RECORD.unpack_from(self._records, (slot - 1) * RECORD_BYTES)
            if record[0] == digest:
                return Remembered(*record[1:])
            slot = self._nexts[slot - 1]
        return None

    def add(self, digest: bytes, statement: Remembered) -> None:
        """The digest must not be in the table."""
        if len(self) == 2 * len(self._heads):
            self._grow()
        chain = self._chain(digest)
        self._nexts.append(self._heads[chain])
        self._records += _RECORD.pack(digest, *statement)
        self._heads[chain] = len(self)
        self.first_ms = self.first_ms or statement.sent_ms
        self.latest_ms = max(self.latest_ms, statement.sent_ms)

    def records(self, first: int = 0) -> bytes:
        """Copies the records from the *first*-th on."""
        return bytes(self._records[first * RECORD_BYTES :])

    def _chain(self, digest: bytes) -> int:
        return int.from_bytes(digest[:4], "little") & (len(self._heads) - 1)

    def _grow(self) -> None:
        """Makes the index anew, with room for as many records again."""
        size = HEADS_MIN
        while size < len(self):
            size *= 2
        hashes = np.frombuffer(bytes(self._records), _FIELDS)["hash"]
        chains = hashes & np.uint32(size - 1)
        order = np.argsort(chains, kind="stable")
        heads, nexts = np.zeros(size, np.uint32), np.zeros(len(self), np.uint32)
        same = chains[order[1:]] == chains[order[:-1]]
        nexts[order[1:]] = np.where(same, order[:-1] + 1, 0)
        ends = np.append(~same, True) if len(order) else np.zeros(0, bool)
        heads[chains[order[ends]]] = order[ends] + 1
        self._heads, self._nexts = array("I", heads.tobytes()), array("I", nexts.tobytes())
