"""The body of a request to append: what is decoded is what was encoded, or it is refused."""

from dataclasses import replace

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.following.append_body import AppendPart, decode_append, encode_append
from metasrv_base.errors import Refused
from tests.dataplane.region.following.stream import leader, sent
from tests.dataplane.region.rig import REGION_ID, B, C, write


def parts() -> list[AppendPart]:
    region = leader(MemoryDisk(MemoryStore()))
    for number in range(3):
        write(region, f"s-{number}", {f"k{number}".encode(): (number, "x")})
    hello = replace(sent(region, 3, common=1), unlogged_ms=None)
    return [
        AppendPart(REGION_ID, B, replace(sent(region, 0, common=2), unlogged_ms=1 << 41)),
        AppendPart(REGION_ID + 1, C, hello),
    ]


def plain(part: AppendPart) -> tuple[object, ...]:
    records = part.records
    groups = [
        (group.position, bytes(group.payload), [schema.encode() for schema in group.schemas])
        for group in records.groups
    ]
    head = (records.epoch, records.history, records.common, records.unlogged_ms)
    return part.region_id, part.root, *head, groups


def test_given_parts_when_encoded_then_they_are_decoded_byte_for_byte() -> None:
    sent_parts = parts()

    assert list(map(plain, decode_append(encode_append(sent_parts)))) == list(
        map(plain, sent_parts)
    )
    assert decode_append(encode_append([])) == []


def test_given_a_schema_of_many_groups_when_encoded_then_it_travels_once() -> None:
    (first, _) = parts()
    schema = first.records.groups[0].schemas[0].encode()

    assert encode_append([first]).count(schema) == 1


def test_given_a_body_that_is_cut_anywhere_when_decoded_then_it_is_refused() -> None:
    body = encode_append(parts())

    for length in range(len(body)):
        with pytest.raises(Refused):
            decode_append(body[:length])
    with pytest.raises(Refused):
        decode_append(body + b"\0")


def test_given_a_body_with_a_changed_byte_when_decoded_then_it_is_refused() -> None:
    body = encode_append(parts())

    for offset in range(len(body)):
        changed = bytearray(body)
        changed[offset] ^= 0x40
        with pytest.raises(Refused):
            decode_append(bytes(changed))
