"""A copy that takes records hears their leader, and reports no silence of it."""

import pytest

from dataplane.datanode.copies.followed import CopyAppends, FollowedRegion
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.following.append_body import AppendPart, encode_append
from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from metasrv_base.wire.node.orders import OpenRegion, RegionColumn
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.rig import REGION_ID, A, B


def led_by(leader: str, epoch: int) -> OpenRegion:
    """An order to copy a region of that leader."""
    members = [
        OrderedCopy(node=leader, root=A, role="leader"),
        OrderedCopy(node="dn-2", root=B, role="in-sync"),
    ]
    return OpenRegion(
        number=1,
        region_id=str(REGION_ID),
        epoch=epoch,
        root=B,
        role="copy",
        table_id=1,
        schema_version=1,
        schema_floor=1,
        key_columns=[1],
        columns=[RegionColumn(id=1, type="int64", nullable=False)],
        copies=RegionCopies(version=1, min_in_sync=1, members=members),
    )


@pytest.mark.parametrize(
    ("root", "told_epoch", "heard"),
    [(B, 1, ["dn-1"]), (B, 2, []), ("/elsewhere", 1, [])],
    ids=["its leader", "the leader of an old epoch", "another copy"],
)
async def test_given_records_when_they_are_taken_then_their_leader_is_heard(
    root: str, told_epoch: int, heard: list[str]
) -> None:
    region = leader(MemoryDisk(MemoryStore()))
    copy = copy_at(MemoryDisk(MemoryStore()), B)
    order, leaders = led_by("dn-1", told_epoch), list[str]()
    followed = FollowedRegion(copy, order, lambda: 0)
    appends = CopyAppends(lambda _: followed, leaders.append)

    body = encode_append([AppendPart(REGION_ID, root, sent(region, 0, common=0))])
    await appends.append(body)

    assert leaders == heard


async def test_given_records_of_an_epoch_that_no_order_named_then_nobody_is_heard() -> None:
    region = leader(MemoryDisk(MemoryStore()))
    copy = copy_at(MemoryDisk(MemoryStore()), B)
    followed, leaders = FollowedRegion(copy, led_by("dn-3", 0), lambda: 0), list[str]()
    appends = CopyAppends(lambda _: followed, leaders.append)

    body = encode_append([AppendPart(REGION_ID, B, sent(region, 0, common=0))])
    (part,) = (await appends.append(body)).parts

    assert part.error is None
    assert leaders == []
