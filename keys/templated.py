"""JSON of one procedure without what only that procedure has, so that a dictionary knows the rest.

JSON holds no control character, so each one is a code here. Times are written as their distance
from the first, and what is as good as random (digests, ids) is set aside as bytes.
"""

import re
import uuid

from metasrv_base.values.frozen import frozen

NAME, NUMBER = b"\x01", b"\x02"
TIME, REGION = b"\x03", b"\x04"
"""Each before a number in decimal: ms after `Own.at_ms`, and the number of a region."""
HEX = {64: b"\x05", 32: b"\x06", 16: b"\x07"}  # digits -> code
UUID = b"\x08"
BYTES = {b"\x05": 32, b"\x06": 16, b"\x07": 8, b"\x08": 16}
WORD = re.compile(r"[A-Za-z0-9_-]{1,128}")
DIGESTS = re.compile(rb'"([0-9a-f][0-9a-f-]{15,63})"')
UUID_SHAPE = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DIGITS = re.compile(rb"[0-9]*")
BEGUN = b"-0123456789" + TIME + REGION
"""Characters before a digit that say that its number, or a code's, began earlier."""
NUMBER_MIN, NUMBER_DIGITS_MAX = 10**11, 19  # shorter ones are left as they are
TIME_DIGITS, REGION_DIGITS = 8, 6
"""Last digits in which the times of a procedure differ (a day of ms), and the regions of a table.
The digits before them are searched for, which takes a third of a search for any number."""
CODES = re.compile(rb"([\x03-\x08])(-?[0-9]{0,19})")
FAR_MS = 1 << 36  # two years: what is farther from the first time is no time of this procedure
REGION_BITS = 32
CONTEXTS = ((b'"', b'"'), (b".", b'"'), (b"/", b"/"), (b"/", b'"'))
"""Text before and after a name; elsewhere its letters are part of another word."""
NUMBER_CHARS_MIN = 3  # a shorter one is a part of too many others


@frozen
class Own:
    """Values that one procedure's JSON repeats and no other's does."""

    name: str
    """The last part of its resource's name."""
    number: str
    """Its resource's id, in decimal if it is a table's."""
    at_ms: int
    """The first of its times."""

    @property
    def table(self) -> int:
        """Id of the table, or -1 if `number` is no id of a table."""
        return int(self.number) if self.number.isdecimal() else -1


def own_of(name: str, number: str, at_ms: int) -> Own:
    """An empty text stands for one that is not a plain word: it is left as it is."""
    words = [text if WORD.fullmatch(text) else "" for text in (name, number)]
    return Own(words[0], words[1], at_ms)


def shorten(json: bytes, own: Own) -> tuple[bytes, bytes]:
    """*json* with codes, and the bytes that were set aside."""
    aside = bytearray()

    def digest(match: re.Match[bytes]) -> bytes:
        digits: bytes = match[1]
        is_uuid = UUID_SHAPE.fullmatch(digits) is not None
        code = UUID if is_uuid else None if b"-" in digits else HEX.get(len(digits))
        if code is None or (digits.isdigit() and not digits.startswith(b"0")):
            return match[0]  # no digest; perhaps the number of a region
        aside.extend(bytes.fromhex(digits.replace(b"-", b"").decode()))
        return b'"%b"' % code

    text = _numbers_coded(DIGESTS.sub(digest, json), own)
    if own.name:
        name = own.name.encode()
        for before, after in CONTEXTS:
            text = text.replace(before + name + after, before + NAME + after)
    if len(own.number) >= NUMBER_CHARS_MIN:
        text = text.replace(own.number.encode(), NUMBER)
    return text, bytes(aside)


def _numbers_coded(text: bytes, own: Own) -> bytes:
    """*text* with codes for the times and the regions of *own*."""
    region = own.table << REGION_BITS
    for first, varying in ((own.at_ms, TIME_DIGITS), (region, REGION_DIGITS)):
        if first >= NUMBER_MIN:
            text = _coded(text, b"%d" % (first // 10**varying), own)
    return text


def _coded(text: bytes, stem: bytes, own: Own) -> bytes:
    """*text* with codes for those of its numbers that begin with *stem*."""
    start, *others = text.split(stem)
    parts = [start]
    for other in others:
        match = DIGITS.match(other)
        assert match is not None, "it may be empty"
        digits, goes_on = stem + match[0], match.end() == len(other)
        if goes_on or parts[-1][-1:] in BEGUN or len(digits) > NUMBER_DIGITS_MAX:
            parts.append(stem + other)
        else:
            parts.append(_code(digits, own) + other[match.end() :])
    return b"".join(parts)


def _code(digits: bytes, own: Own) -> bytes:
    """A number as a time or a region of *own*; *digits*, if it is neither."""
    number = int(digits)
    if abs(number - own.at_ms) < FAR_MS:
        return TIME + b"%d" % (number - own.at_ms)
    if number >> REGION_BITS == own.table:
        return REGION + b"%d" % (number & (1 << REGION_BITS) - 1)
    return digits


def restore(text: bytes, aside: bytes, own: Own, bytes_max: int) -> bytes:
    """Returns the text that `shorten` was given.

    Raises ValueError for text that `shorten` does not produce, and if names would lengthen the
    result beyond *bytes_max*.
    """
    numbers, names = text.count(NUMBER), text.count(NAME)
    if len(text) + numbers * len(own.number) + names * len(own.name) > bytes_max:
        raise ValueError("too long")
    text = text.replace(NUMBER, own.number.encode()).replace(NAME, own.name.encode())
    table, offset = own.table, 0

    def word(match: re.Match[bytes]) -> bytes:
        nonlocal offset
        code, number = match.groups()
        if code == TIME:
            return b"%d" % (own.at_ms + int(number))
        if code == REGION:
            return b"%d" % (table << REGION_BITS | int(number))
        raw = aside[offset : offset + BYTES[code]]
        offset += BYTES[code]
        digits = str(uuid.UUID(bytes=raw)) if code == UUID else raw.hex()
        return digits.encode() + number

    restored = CODES.sub(word, text)
    if offset != len(aside):
        raise ValueError("bytes set aside are missing, or too many")
    return restored
