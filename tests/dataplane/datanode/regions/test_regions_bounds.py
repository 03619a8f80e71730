"""A leader alone acknowledges nothing below its minimum (docs/protocols.md P5.12), and a node opens
no more regions than a heartbeat reports."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from metasrv_base.errors import Unavailable
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from metasrv_base.wire.node.nodes import HEARTBEAT_REGIONS_MAX
from metasrv_base.wire.node.orders import CloseRegion, CreateRegion, IngestFiles, OpenRegion
from tests.dataplane.datanode.regions.held_reads import Desk, Shape, desk_over, stream
from tests.dataplane.region.rig import REGION_ID

SHAPE = Shape(files=1, columns=2, rows=10)
ANOTHER = REGION_ID + 2


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


def order_of(desk: Desk) -> CreateRegion:
    """The order for another region."""
    before = desk.regions.serving(REGION_ID).order
    assert isinstance(before, CreateRegion)
    root = f"{Path(before.root).parent}/{ANOTHER}"
    update = {"number": 10, "region_id": str(ANOTHER), "root": root}
    return before.model_copy(update={**update, "table_id": table_of(RegionId(ANOTHER))})


async def test_given_as_many_regions_as_a_heartbeat_reports_when_another_is_to_open_then_refused(
    desk: Desk,
) -> None:
    slots, order = desk.regions._slots, order_of(desk)
    here = slots[REGION_ID]
    others = range(ANOTHER + 1, ANOTHER + 1 + HEARTBEAT_REGIONS_MAX - len(slots))
    slots.update(dict.fromkeys(others, here))

    with pytest.raises(Unavailable) as refused:
        await desk.regions.carry_out(order)
    await desk.regions.carry_out(here.order)

    assert refused.value.code == "node-not-eligible"
    assert len(slots) == HEARTBEAT_REGIONS_MAX
    await desk.regions.carry_out(CloseRegion(number=11, region_id=str(REGION_ID), epoch=1))
    await desk.regions.carry_out(order)
    assert desk.regions.serving(ANOTHER)
    for region_id in others:
        del slots[region_id]
