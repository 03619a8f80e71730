"""Keys of rows, and the calls that a region makes for those of small statements."""

import sys
from collections import Counter
from collections.abc import Sequence
from types import FrameType

import pyarrow as pa

from dataplane.region.engine.region import Region
from dataplane.region.format.row_keys import RowKeys
from metasrv_base.wire.node.batches import BatchHeader
from tests.dataplane.region.rig import SPEC, batch, header, place

GROUP = 64
CALLS_MAX = 120
"""Calls of Python and C for each statement of a group of 64; 115 were counted, and 141 while a
statement without conditions made an array of no keys, and a single key was searched for rises."""
Statements = Sequence[tuple[BatchHeader, pa.RecordBatch]]


def statements(first: int) -> Statements:
    keys = [b"%08x" % (number * 0x9E3779B1 % 2**32) for number in range(first, first + GROUP)]
    return [(header(f"statement-{key!r}"), batch({key: (1, "x")})) for key in keys]


def counted(region: Region, group: Statements) -> Counter[str]:
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            calls[frame.f_code.co_name if event == "call" else "of C"] += 1

    sys.setprofile(note)
    try:
        answers = region.writer.apply(group)
    finally:
        sys.setprofile(None)
    assert not [answer for answer in answers if isinstance(answer, Exception)]
    return calls


def test_given_statements_of_one_row_when_a_group_is_applied_then_each_takes_few_calls() -> None:
    region = Region.create(place(), SPEC, 1)
    for warm in range(4):
        counted(region, statements(warm * GROUP))

    calls = counted(region, statements(4 * GROUP))

    assert calls["take_in"] == GROUP
    assert calls.total() / GROUP <= CALLS_MAX, calls.most_common(20)
    assert calls["_rising"] <= 1, "one key is in order"
    region.close()


def test_given_one_key_when_asked_then_it_rises_and_is_distinct() -> None:
    keys = RowKeys(pa.array([b"k"], pa.binary()))

    assert keys.are_distinct()
    assert keys.is_rising
    assert keys.runs == ((0, 1),)
    assert keys.bounds == (b"k", b"k")
