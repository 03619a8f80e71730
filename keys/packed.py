"""Short forms of stored values: the first byte of a value is the number of its packing.

Packing 1 is JSON itself, which begins with a brace. Packing 2 is what the model's family says: of a
history, its JSON deflated with a preset dictionary; of an idempotency key, a row of bytes.
"""

import zlib
from dataclasses import dataclass, field
from typing import Any

PACKING = 2
MARK = bytes([PACKING])
MARKS_END = 0x20  # a packing's number lies below: no JSON begins with such a byte
JSON_BYTES_MAX = 4 << 20  # of one unpacked value: twice what a transaction holds, and more


class NewerPacking(ValueError):
    """Packed by a newer server."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def is_json(raw: bytes) -> bool:
    """Whether *raw* is not in packing 2. Raises NewerPacking."""
    if raw[:1] == MARK:
        return False
    if raw and PACKING < raw[0] < MARKS_END:
        raise NewerPacking(raw[0])
    return True


@dataclass(frozen=True)
class Deflated:
    """JSON under a preset dictionary (RFC 1950), with its checksum."""

    dictionary: bytes
    _primed: Any = field(init=False, repr=False, compare=False)
    """A compressor that has read the dictionary: a copy costs a fifth of reading it again."""

    def __post_init__(self) -> None:
        primed = zlib.compressobj(level=6, zdict=self.dictionary)
        object.__setattr__(self, "_primed", primed)

    def pack(self, json: bytes) -> bytes:
        compressor = self._primed.copy()
        return MARK + bytes(compressor.compress(json) + compressor.flush())

    def unpack(self, raw: bytes) -> bytes:
        """Raises ValueError for what `pack` does not make, and beyond JSON_BYTES_MAX."""
        reader = zlib.decompressobj(zdict=self.dictionary)
        try:
            json = reader.decompress(raw[len(MARK) :], JSON_BYTES_MAX)
        except zlib.error as error:
            raise ValueError("not deflated by this program") from error
        if not reader.eof or reader.unused_data:
            raise ValueError("cut off, too long, or followed by other bytes")
        return json
