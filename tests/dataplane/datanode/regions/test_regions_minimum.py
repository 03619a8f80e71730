"""A leader alone acknowledges nothing below its minimum (docs/protocols.md P5.12)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from metasrv_base.wire.node.orders import IngestFiles, OpenRegion
from tests.dataplane.datanode.regions.held_reads import Desk, Shape, desk_over, stream
from tests.dataplane.region.rig import REGION_ID

SHAPE = Shape(files=1, columns=2, rows=10)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_over(str(tmp_path), SHAPE) as desk:
        desk.fill(REGION_ID, SHAPE)
        yield desk


async def tell(desk: Desk, version: int, minimum: int) -> None:
    """Tells the leader of its copies again: it has no other."""
    created = desk.regions.serving(REGION_ID).order
    leader = OrderedCopy(node="dn-1", root=created.root, role="leader")
    copies = RegionCopies(version=version, min_in_sync=minimum, members=[leader])
    fields = created.model_dump(include=set(OpenRegion.model_fields) - {"op"})
    await desk.regions.carry_out(
        OpenRegion.model_validate({**fields, "number": 10 + version, "copies": copies})
    )


def refused(desk: Desk) -> str | None:
    """Returns the code with which a write is refused; None: it is not."""
    slot = desk.regions.serving(REGION_ID)
    try:
        desk.regions.must_order(slot)
    except Unavailable as error:
        assert not desk.regions._may_write(REGION_ID, slot.epoch)
        return error.code
    assert desk.regions._may_write(REGION_ID, slot.epoch)
    return None


async def test_given_a_minimum_of_two_when_the_leader_has_no_other_copy_then_it_takes_no_write(
    desk: Desk,
) -> None:
    await tell(desk, 1, minimum=1)
    assert refused(desk) is None

    await tell(desk, 2, minimum=2)

    assert refused(desk) == "too-few-copies"
    await stream(desk, REGION_ID)  # reads go on
    await tell(desk, 3, minimum=1)
    assert refused(desk) is None


async def test_given_an_order_of_an_earlier_version_when_it_comes_late_then_the_minimum_stays(
    desk: Desk,
) -> None:
    await tell(desk, 2, minimum=2)

    await tell(desk, 1, minimum=1)

    assert refused(desk) == "too-few-copies"


async def test_given_too_few_copies_when_files_are_to_be_taken_then_they_are_not(
    desk: Desk,
) -> None:
    await tell(desk, 1, minimum=2)
    slot = desk.regions.serving(REGION_ID)
    order = IngestFiles(
        number=20,
        region_id=str(REGION_ID),
        epoch=slot.epoch,
        procedure="p",
        attempt="a",
        index=0,
        mark="m",
        files=[],
    )

    with pytest.raises(Unavailable) as refusal:
        await desk.regions.carry_out(order)

    assert refusal.value.code == "too-few-copies"
