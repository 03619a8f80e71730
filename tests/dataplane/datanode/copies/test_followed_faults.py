"""A fault of our own in one copy ends its opening, and harms no other copy."""

import pytest

from dataplane.datanode.copies.followed import CopyAppends, FollowedRegion
from dataplane.region.copies.staleness import CommonAt
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.content import RegionContent
from dataplane.region.following.append_body import AppendPart, encode_append
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.log.logged_group import LoggedGroup
from tests.dataplane.datanode.copies.fetch_bench import open_order
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.rig import REGION_ID, SPEC, B, C, place, write

LAG_MS = 1_000


class Faulty:
    """A copy whose memory has no room, once, for a record that counts. Records come by requests,
    beside those of another region."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.region = leader(MemoryDisk(MemoryStore()))
        for number in (1, 2, 3):
            write(self.region, f"s-{number}", {f"k{number}".encode(): (number, "x")})
        self.followed = follows(copy_at(MemoryDisk(MemoryStore())))
        self.other = follows(CopyRegion.create(place(MemoryDisk(MemoryStore()), C), SPEC, epoch=1))
        here = {REGION_ID: self.followed, REGION_ID + 1: self.other}
        self.appends = CopyAppends(lambda region_id: here[region_id], lambda _: None)
        self.monkeypatch = monkeypatch

    async def send(self, after: int, common: int, upto: int | None = None) -> list[str | None]:
        """Both regions are sent records. Returns the codes of their errors."""
        records = sent(self.region, after, common, upto=upto)
        parts = [AppendPart(REGION_ID, B, records), AppendPart(REGION_ID + 1, C, records)]
        answer = await self.appends.append(encode_append(parts))
        return [None if part.error is None else part.error.code for part in answer.parts]

    def fail_once(self) -> None:
        assert self.followed.copy._opened is not None
        failing, add = self.followed.copy._opened.content, RegionContent.add
        is_full = iter([True])

        def add_or_fail(content: RegionContent, group: LoggedGroup, wall_ms: int) -> None:
            if content is failing and next(is_full, False):
                raise MemoryError
            add(content, group, wall_ms)

        self.monkeypatch.setattr(RegionContent, "add", add_or_fail)

    def keys(self) -> list[bytes]:
        rows = self.followed.rows_within(LAG_MS)
        keys: list[bytes] = rows.reader.get([b"k1", b"k2", b"k3"]).column("_key").to_pylist()
        return keys


def follows(copy: CopyRegion) -> FollowedRegion:
    return FollowedRegion(copy, open_order(1, None), lambda: 10_000)


async def test_given_a_fault_while_records_take_effect_then_none_is_missing_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Faulty(monkeypatch)
    await bench.send(0, common=0, upto=2)
    bench.fail_once()

    await bench.send(2, common=2)
    await bench.send(2, common=3)
    await bench.send(3, common=3)

    bench.followed.tell(CommonAt(1, 3, 9_900))
    assert bench.keys() == [b"k1", b"k2", b"k3"]


async def test_given_a_fault_in_one_copy_then_the_others_of_the_request_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Faulty(monkeypatch)
    await bench.send(0, common=0, upto=2)
    bench.fail_once()

    assert await bench.send(2, common=2) == ["not-ready", None]

    assert bench.other.copy.durable.sequence == 3
    assert await bench.send(2, common=3) == [None, None]
