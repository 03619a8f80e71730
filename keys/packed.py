"""Short forms of stored values: the first byte of a value is the number of its packing.

Packing 1 is JSON itself, which begins with a brace. What the others are, the model's family says:
an idempotency key in packing 2 is a row of bytes; a history in packing 2 its JSON deflated under a
preset dictionary, and in packing 3 the same of what only that procedure has not (keys/templated).
"""

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

from keys.templated import Own, own_of, restore, shorten

JSON, ROW, DEFLATED, TEMPLATED = 1, 2, 2, 3
MARKS_END = 0x20  # a packing's number lies below: no JSON begins with such a byte
JSON_BYTES_MAX = 4 << 20  # of one unpacked value: twice what a transaction holds, and more
AT_MS_BITS = 48
HEAD = struct.Struct(">BI")  # mark, CRC-32 of all that follows
LINES = b"\n"  # ends the name and the number that stand before the text
RAW = -zlib.MAX_WBITS  # a stream without a head and an end of its own
NEAR, NEAR_MEMORY = -13, 5
"""Window and memLevel of a compressor of 48 KiB, which sees the last 8 KiB of a dictionary. One
that sees 32 KiB has 264 KiB, and its copy takes 45 us instead of 10 where caches are cold."""
SHORT = 16  # a text so many times longer than its deflated form needs no more of the dictionary


class NewerPacking(ValueError):
    """Packed by a newer server."""

    def __init__(self, number: int, newest: int) -> None:
        super().__init__(number)
        self.number = number
        self.known = newest


def packing_of(raw: bytes, newest: int) -> int:
    """Raises NewerPacking for one above *newest*."""
    number = raw[0] if raw and JSON < raw[0] < MARKS_END else JSON
    if number > newest:
        raise NewerPacking(number, newest)
    return number


def deflated(json: bytes) -> bytes:
    """Packing 2 without a dictionary: RFC 1950 behind the mark."""
    return bytes([DEFLATED]) + zlib.compress(json)


def inflated(raw: bytes, dictionary: bytes = b"") -> bytes:
    """Packing 2: RFC 1950, with its checksum. Raises ValueError for anything else, and beyond
    JSON_BYTES_MAX."""
    reader = zlib.decompressobj(zdict=dictionary) if dictionary else zlib.decompressobj()
    json, rest = _read(reader, raw[1:])
    if rest:
        raise ValueError("followed by other bytes")
    return json


def _read(reader: Any, raw: bytes) -> tuple[bytes, bytes]:
    """Inflates *raw*; returns the result and the bytes after it. Raises ValueError."""
    try:
        inflated = reader.decompress(raw, JSON_BYTES_MAX)
    except zlib.error as error:
        raise ValueError("not deflated by this program") from error
    if not reader.eof:
        raise ValueError("cut off, or too long")
    return inflated, reader.unused_data


@dataclass(frozen=True)
class Templates:
    """Packing 3: mark and checksum, a deflated text, what was set aside of it, and the first time.

    The text is that of keys/templated, behind the name and the number in lines of their own.
    """

    dictionary: bytes
    _primed: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    """Compressors that have read the dictionary, the small one first: a copy costs a fifth of
    reading it again."""

    def __post_init__(self) -> None:
        near = zlib.compressobj(level=6, wbits=NEAR, memLevel=NEAR_MEMORY, zdict=self.dictionary)
        whole = zlib.compressobj(level=6, wbits=RAW, zdict=self.dictionary)
        object.__setattr__(self, "_primed", (near, whole))

    def pack(self, json: bytes, own: Own) -> bytes:
        """Packs *json* by template. The time of *own* has at most AT_MS_BITS."""
        text, aside = shorten(json, own)
        lines = LINES.join((own.name.encode(), own.number.encode(), text))
        for primed in self._primed:
            compressor = primed.copy()
            deflated: bytes = compressor.compress(lines) + compressor.flush()
            if SHORT * len(deflated) < len(lines):
                break
        rest = deflated + aside + own.at_ms.to_bytes(AT_MS_BITS // 8)
        return HEAD.pack(TEMPLATED, zlib.crc32(rest)) + rest

    def unpack(self, raw: bytes) -> bytes:
        """Raises ValueError for what `pack` does not make, and beyond JSON_BYTES_MAX."""
        if len(raw) < HEAD.size or HEAD.unpack_from(raw)[1] != zlib.crc32(raw[HEAD.size :]):
            raise ValueError("not as it was written: its checksum differs")
        reader = zlib.decompressobj(wbits=RAW, zdict=self.dictionary)
        lines, behind = _read(reader, raw[HEAD.size :])
        if len(behind) < AT_MS_BITS // 8 or lines.count(LINES) < 2:
            raise ValueError("cut off")
        name, number, text = lines.split(LINES, 2)
        cut = len(behind) - AT_MS_BITS // 8
        own = own_of(name.decode(), number.decode(), int.from_bytes(behind[cut:]))
        return restore(text, behind[:cut], own, JSON_BYTES_MAX)
