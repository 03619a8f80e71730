"""A backup file is read as it was written, or refused with what is wrong."""

import gzip
import json
import random
import tracemalloc
import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv_base.backup.backup_file import (
    LINE_BYTES_MAX,
    BackupFailure,
    BackupHeader,
    BackupKey,
)
from metasrv_base.backup.backup_reader import BackupReader
from metasrv_base.backup.backup_writer import BackupWriter
from metasrv_base.errors import MetaError, Refused

Stored = tuple[bytes, bytes, int, int, int]
"""Key, value, revisions of its first and last put, lease."""
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).map(str.encode)
NUMBERS = st.integers(0, 1 << 62)
CONTENTS = st.dictionaries(
    NAMES, st.tuples(st.binary(max_size=200), NUMBERS, NUMBERS, NUMBERS), max_size=30
).map(lambda stored: sorted((key, *rest) for key, rest in stored.items()))


def header(keys: int) -> BackupHeader:
    return BackupHeader(cluster_id="c-1", revision=7, keys=keys, made_at_ms=1, made_by="0.1")


def backup_of(stored: Sequence[Stored], part: int = 3) -> bytes:
    writer = BackupWriter()
    begun = writer.begin(header(len(stored)))
    parts = [
        writer.keys(BackupKey.of(*key) for key in stored[first : first + part])
        for first in range(0, len(stored), part)
    ]
    return b"".join([begun, *parts, writer.end()])


def read(data: bytes, piece: int = 100) -> tuple[BackupHeader, list[Stored]]:
    reader, found = BackupReader(), list[Stored]()
    for first in range(0, len(data), piece):
        found += (
            (key.key.encode(), key.raw, key.created, key.revision, key.lease or 0)
            for key in reader.feed(data[first : first + piece])
        )
    return reader.close(), found


def why_refused(data: bytes) -> str:
    with pytest.raises(MetaError) as raised:
        read(data)
    assert isinstance(raised.value, Refused)
    assert raised.value.code == "invalid-backup"
    return str(raised.value.facts["reason"])


@given(stored=CONTENTS, part=st.integers(1, 10), piece=st.integers(1, 300))
def test_given_any_keys_when_written_and_read_then_they_are_the_same(
    stored: list[Stored], part: int, piece: int
) -> None:
    assert read(backup_of(stored, part), piece) == (header(len(stored)), stored)


@given(stored=CONTENTS, data=st.data())
def test_given_a_backup_that_is_cut_anywhere_then_refused(
    stored: list[Stored], data: st.DataObject
) -> None:
    whole = backup_of(stored)
    length = data.draw(st.integers(0, len(whole) - 1))

    assert "cut" in why_refused(whole[:length])


@given(stored=CONTENTS, data=st.data())
def test_given_a_backup_of_which_a_bit_is_another_then_refused_or_equal(
    stored: list[Stored], data: st.DataObject
) -> None:
    """Some bits of a gzip file say nothing of its content: its time, the system it was made on."""
    damaged = bytearray(backup_of(stored))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = read(bytes(damaged))
    except Refused:
        return
    assert found == (header(len(stored)), stored)


def lines_of(data: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in gzip.decompress(data).splitlines()]


def packed(lines: Sequence[object]) -> bytes:
    texts = (json.dumps(line, separators=(",", ":")) for line in lines)
    return gzip.compress("".join(f"{text}\n" for text in texts).encode())


TWO = [(b"a", b"1", 4, 5, 0), (b"b", b"2", 6, 6, 0)]


def test_given_a_person_with_gzip_then_every_line_can_be_read() -> None:
    first, *keys, last = lines_of(backup_of([*TWO, (b"c", b"\xff", 7, 7, 9)]))

    assert (first["kind"], first["revision"]) == ("metasrv-backup", 7)
    assert keys[0] == {"key": "a", "value": "1", "created": 4, "revision": 5}
    assert keys[2] == {"key": "c", "base64": "/w==", "created": 7, "revision": 7, "lease": 9}
    assert last["keys"] == 3


def test_given_lines_that_were_edited_then_refused_with_the_reason() -> None:
    first, a, b, end = lines_of(backup_of(TWO))

    assert "digest" in why_refused(packed([first, {**a, "value": "9"}, b, end]))
    assert "1 of 2 keys" in why_refused(packed([first, a, end]))
    assert "out of order" in why_refused(packed([first, b, a, end]))
    assert "out of order" in why_refused(packed([first, a, a, end]))
    assert "line 3" in why_refused(packed([first, a, {"key": 1}, end]))
    assert "line 3" in why_refused(packed([first, a, {"what": 1}, end]))
    assert "line 2" in why_refused(packed([first, {**a, "base64": "YQ=="}, b, end]))
    assert "behind" in why_refused(packed([first, a, b, end, end]))
    assert "behind" in why_refused(backup_of(TWO) + b"x")


def test_given_what_is_no_backup_then_refused_as_foreign() -> None:
    noise = random.Random(1).randbytes(2_000)

    assert "gzip" in why_refused(noise)
    assert "no backup" in why_refused(gzip.compress(noise + b"\n"))
    assert "no backup" in why_refused(packed([{"kind": "other", "format": 1}]))
    assert "cut" in why_refused(b"")


def test_given_a_newer_format_then_refused_by_its_number() -> None:
    first = {"kind": "metasrv-backup", "format": 2, "more": True}

    assert "format 2 is newer than 1" in why_refused(packed([first]))


def test_given_a_server_that_gave_up_then_its_reason() -> None:
    writer = BackupWriter()
    failure = BackupFailure(failed="history-expired", reason="compacted")
    data = writer.begin(header(2)) + writer.fail(failure)

    with pytest.raises(MetaError) as raised:
        read(data)
    assert (raised.value.code, raised.value.facts["reason"]) == ("history-expired", "compacted")


def test_given_a_small_file_that_unpacks_to_a_gigabyte_then_refused_within_little_memory() -> None:
    pack = zlib.compressobj(9, wbits=31)
    start = pack.compress(b" " * (1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)
    # Behind a full flush the same text is compressed to the same bytes. No reader gets to the end.
    piece = pack.compress(b" " * (1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)
    bomb = start + piece * 999
    tracemalloc.start()
    try:
        reason = why_refused(bomb)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert "longer" in reason
    assert most < 4 * LINE_BYTES_MAX
