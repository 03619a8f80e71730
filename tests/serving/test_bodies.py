"""Bodies: their end is found wherever the network cuts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv_base.errors import Refused
from serving.bodies import RequestBody
from serving.heads import CHUNKED


def taken(body: RequestBody, data: bytes, size: int) -> int:
    """Returns how many bytes of *data* belong to *body*, given to it *size* bytes at a time."""
    at = 0
    while at < len(data) and not body.is_over:
        part = data[at : at + size]
        found = body.take(part)
        at += found
        if found < len(part):
            assert body.is_over
    return at


def chunked(chunks: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    st.binary(max_size=20),
    st.integers(1, 50),
)
def test_given_chunks_in_any_cut_then_the_end_is_after_the_last(
    chunks: list[bytes], after: bytes, size: int
) -> None:
    sent = chunked(chunks)
    body = RequestBody(CHUNKED)

    assert taken(body, sent + after, size) == len(sent)
    assert body.is_over


@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 50))
def test_given_a_length_then_exactly_so_many_bytes(length: int, sent: int, size: int) -> None:
    body = RequestBody(length)

    assert taken(body, b"x" * sent, size) == min(length, sent)
    assert body.is_over == (sent >= length)


@pytest.mark.parametrize(
    "sent",
    [
        b"5;name=value\r\n",
        b"5 \r\n",
        b"-5\r\n",
        b"0x5\r\n",
        b"\r\n",
        b"5\n",
        b"00000000000000005\r\n",
        b"5" * 30,
        b"1\r\nab",
        b"1\r\na\n",
        b"0\r\nTrailer: x\r\n\r\n",
    ],
)
def test_given_chunks_that_are_not_plain_then_refused(sent: bytes) -> None:
    with pytest.raises(Refused) as refused:
        taken(RequestBody(CHUNKED), sent + b"\r\n", 1)

    assert refused.value.code == "malformed-request"
