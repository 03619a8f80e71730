"""Server-sent events in any cut: the same blocks."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv_base.wire.http import sse, sse_blocks
from metasrv_base.wire.http.sse_blocks import SseBlock, SseBlocks

STREAM = (
    b":\n\n"
    + b":\nid: 4\n\n"
    + sse.event("version", '{"a":"b: c"}', "5")
    + sse.GOAWAY
    + b"data:x\n\n"
    + b"event: half"
)
BLOCKS = [
    SseBlock("", "", "4"),
    SseBlock("version", '{"a":"b: c"}', "5"),
    SseBlock("goaway", "{}", None),
    SseBlock("message", "x", None),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_given_a_stream_in_any_cut_then_the_same_blocks(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    blocks = SseBlocks()

    told = [block for start, end in pairwise(places) for block in blocks.take(STREAM[start:end])]

    assert told == BLOCKS


def test_given_a_block_without_an_end_then_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_blocks, "BLOCK_BYTES_MAX", 100)
    blocks = SseBlocks()
    blocks.take(b"x" * 100)

    with pytest.raises(ValueError, match="a block of more"):
        blocks.take(b"x")


def test_given_bytes_that_are_no_text_then_they_are_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        SseBlocks().take(b"data: \xff\n\n")
