"""64-bit hashes of Arrow columns, for whole columns at once: a stored format.

A value of fixed width is one little-endian word, sign-extended (a decimal: two); a text or binary
is its length and its bytes, in words of 8, the last one filled with zeros. Words are mixed by round
and avalanche of xxHash64 (https://github.com/Cyan4973/xxHash); a value of more than `LONG_BYTES` is
hashed by BLAKE2b. Not for adversaries: whoever writes rows can make two of them collide.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]

LONG_BYTES = 256
FEW = 8
"""Values that are hashed one by one in less time than an array takes."""
_Q1, _Q2, _Q3, _Q4 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63
_P1, _P2, _P3, _P4 = (np.uint64(prime) for prime in (_Q1, _Q2, _Q3, _Q4))
_MASK = (1 << 64) - 1
_WIDE = {1: "<i1", 2: "<i2", 4: "<i4", 8: "<i8"}


def hashes_of(column: pa.Array) -> Hashes:
    """Returns the hash of each value. The hash of null is 0."""
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        hashes = _of_bytes(column)
    else:
        hashes = np.zeros(len(column), np.uint64)
        for word in _words(column):
            hashes = _round(hashes, word)
        hashes = avalanche(hashes)
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes


def hashes_of_keys(keys: Sequence[bytes]) -> Hashes:
    """The same of binary values, without what arrays cost when there are few."""
    if len(keys) > FEW:
        return hashes_of(pa.array(keys, pa.binary()))
    return np.array([hash_of(key) for key in keys], np.uint64)


def hash_of(key: bytes) -> int:
    """The hash of one binary value."""
    if len(key) > LONG_BYTES:
        return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
    state = (len(key) * _Q1 + _Q4) & _MASK
    for start in range(0, len(key), 8):
        mixed = int.from_bytes(key[start : start + 8], "little") * _Q2 & _MASK
        mixed = (mixed << 31 | mixed >> 33) * _Q1 & _MASK
        mixed ^= state
        state = ((mixed << 27 | mixed >> 37) & _MASK) * _Q1 + _Q4 & _MASK
    state = (state ^ state >> 33) * _Q2 & _MASK
    state = (state ^ state >> 29) * _Q3 & _MASK
    return state ^ state >> 32


def avalanche(words: Hashes) -> Hashes:
    """Every bit of a word in every bit of the result; changes *words*."""
    words ^= words >> np.uint64(33)
    words *= _P2
    words ^= words >> np.uint64(29)
    words *= _P3
    words ^= words >> np.uint64(32)
    return words


def _round(hashes: Hashes, words: Hashes) -> Hashes:
    mixed = words * _P2
    mixed = (mixed << np.uint64(31)) | (mixed >> np.uint64(33))
    mixed *= _P1
    mixed ^= hashes
    mixed = (mixed << np.uint64(27)) | (mixed >> np.uint64(37))
    mixed *= _P1
    mixed += _P4
    return mixed


def _words(column: pa.Array) -> Sequence[Hashes]:
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    width = column.type.bit_width // 8
    start, end = column.offset, column.offset + len(column)
    data = column.buffers()[1]
    if data is None or not len(column):
        return [np.zeros(len(column), np.uint64)]
    if width == 16:
        pairs = np.frombuffer(data, "<u8")[2 * start : 2 * end]
        return [pairs[0::2], pairs[1::2]]
    values = np.frombuffer(data, _WIDE[width], count=end)[start:]
    return [values.astype(np.int64).view(np.uint64)]


def _of_bytes(column: pa.Array) -> Hashes:
    count = len(column)
    if not count:
        return np.zeros(0, np.uint64)
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, "<i4")[column.offset : column.offset + count + 1]
    bounds = bounds.astype(np.int64)
    first, last = int(bounds[0]), int(bounds[-1])
    padded = np.zeros(last - first + 8, np.uint8)
    if last > first:
        padded[:-8] = np.frombuffer(data, np.uint8, last - first, first)
    starts, lengths = bounds[:-1] - first, np.diff(bounds)
    words: Hashes = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    hashes = _of_short(words, starts, np.minimum(lengths, LONG_BYTES))
    for row in np.flatnonzero(lengths > LONG_BYTES).tolist():
        raw = padded[starts[row] : starts[row] + lengths[row]]
        digest = hashlib.blake2b(raw, digest_size=8).digest()  # type: ignore[arg-type]
        hashes[row] = int.from_bytes(digest, "little")
    return hashes


def _of_short(
    words: Hashes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> Hashes:
    hashes = lengths.astype(np.uint64) * _P1 + _P4  # nothing is not null
    for offset in range(0, int(lengths.max()) - 7, 8):
        has = lengths >= offset + 8
        if has.all():
            hashes = _round(hashes, words[starts + offset])
        else:
            hashes[has] = _round(hashes[has], words[starts[has] + offset])
    rest = lengths & 7
    has = rest > 0
    if has.any():
        tail = words[starts + (lengths - rest)]
        mask = (np.uint64(1) << (rest.astype(np.uint64) << np.uint64(3))) - np.uint64(1)
        hashes = np.where(has, _round(hashes, tail & mask), hashes)
    return avalanche(hashes)
