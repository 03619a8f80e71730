"""Histories that the end of the dictionary knows are packed with little memory, others with all."""

import zlib
from random import Random

import pytest

from keys.packed import HEAD, LINES, NEAR, NEAR_MEMORY, RAW, Templates
from keys.templated import own_of, shorten

OWN = own_of("flights", "1024", 0)
RNG = Random(1)
RARE, OTHERS, FREQUENT = (RNG.randbytes(size).hex().encode() for size in (1_000, 5_000, 1_000))
TEMPLATES = Templates(RARE + OTHERS + FREQUENT)


def deflated(text: bytes, *, wbits: int, memory: int) -> bytes:
    lines = LINES.join((OWN.name.encode(), OWN.number.encode(), shorten(text, OWN)[0]))
    compressor = zlib.compressobj(level=6, wbits=wbits, memLevel=memory, zdict=TEMPLATES.dictionary)
    return compressor.compress(lines) + compressor.flush()


@pytest.mark.parametrize(
    ("text", "wbits", "memory"),
    [
        (FREQUENT + RARE[:50], NEAR, NEAR_MEMORY),
        (RARE, RAW, zlib.DEF_MEM_LEVEL),
    ],
)
def test_given_a_text_when_packed_then_by_as_much_of_the_dictionary_as_it_needs(
    text: bytes, wbits: int, memory: int
) -> None:
    packed = TEMPLATES.pack(text, OWN)

    assert packed[HEAD.size :].startswith(deflated(text, wbits=wbits, memory=memory))
    assert 16 * len(packed) < len(text)
    assert TEMPLATES.unpack(packed) == text
