"""Orders for quarantine at a node: what refuses them, late orders, and regions that come back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Protocol

import pytest

from dataplane.datanode.orders.journal import NodeJournal, open_journal
from dataplane.datanode.orders.journal_format import Joined
from dataplane.datanode.orders.orders import OrderExecutor
from dataplane.datanode.ports import Spawn
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.store import DiskStore
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.errors import MetaError, NotFound
from metasrv_base.wire.node.orders import (
    CloseRegion,
    CreateRegion,
    DeleteQuarantined,
    OpenRegion,
    Order,
    OrderRequest,
    QuarantineRoot,
    RegionColumn,
)
from tests.dataplane.datanode.folders.folders import PowerLossError
from tests.dataplane.region.rig import write
from tests.fakes.clock import FakeClock

REGION, TERM = 1024 << 32, 5
ROOT, NEW = f"/n/regions/{REGION}-1", f"/n/regions/{REGION}-2"
HELD = f"/n/quarantine/{REGION}-1@7"


class Node:
    """A process of a node over its medium."""

    def __init__(self, journal: NodeJournal, disk: MemoryDisk, spawn: Spawn) -> None:
        clock = FakeClock()
        leases = RegionLeases("i1")
        store = DiskStore(disk, clock, "/n")
        self.media, self.disk = disk.store, disk
        self.regions = NodeRegionSet(store, leases, clock, spawn)
        self.desk = OrderExecutor(journal, self.regions)

    async def order(self, *orders: Order, term: int = TERM) -> list[str | None]:
        """The code of each result; None: it was done."""
        await self.desk.hear_term(term)
        request = OrderRequest(cluster_id="c", node_id="dn-1", term=term, orders=list(orders))
        results = (await self.desk.execute(request)).results
        return [None if result.error is None else result.error.code for result in results]

    def write_row(self) -> None:
        (slot,) = self.regions
        assert slot.owner is not None
        write(slot.owner.region, "s", {b"a": (1, "x")})

    def is_there(self, root: str) -> bool:
        try:
            self.disk.list(root)
        except NotFound:
            return False
        return True


class Start(Protocol):
    async def __call__(self, media: MemoryStore, disk: MemoryDisk | None = None) -> Node: ...


@asynccontextmanager
async def starting() -> AsyncIterator[Start]:
    """Starts processes, one after the other."""
    async with asyncio.TaskGroup() as group:
        owners: list[asyncio.Task[None]] = []

        async def start(media: MemoryStore, disk: MemoryDisk | None = None) -> Node:
            way = disk or MemoryDisk(media)
            journal = open_journal(way, "/n", "dn-1")
            if journal.state.cluster_id is None:
                await journal.commit([Joined(cluster_id="c")])
            return Node(journal, way, lambda work: owners.append(group.create_task(work)))

        yield start
        for owner in owners:
            owner.cancel()


def created(number: int, epoch: int = 1, root: str = ROOT) -> CreateRegion:
    return CreateRegion(
        number=number,
        region_id=str(REGION),
        epoch=epoch,
        root=root,
        table_id=1024,
        schema_version=1,
        schema_floor=1,
        columns=[
            RegionColumn(id=1, type="int64", nullable=False),
            RegionColumn(id=2, type="string", nullable=True),
        ],
        key_columns=[1],
    )


def opened(number: int, epoch: int, root: str = ROOT, borrows: tuple[str, ...] = ()) -> OpenRegion:
    made = created(number, epoch, root).model_dump(exclude={"op", "replaces"})
    return OpenRegion.model_validate({**made, "borrows": list(borrows)})


def closed(number: int, epoch: int = 1) -> CloseRegion:
    return CloseRegion(number=number, region_id=str(REGION), epoch=epoch)


def quarantine(number: int, opening: int = 1, epoch: int = 1) -> QuarantineRoot:
    return QuarantineRoot(
        number=number,
        region_id=str(REGION),
        epoch=epoch,
        root=ROOT,
        fence_epoch=epoch,
        fence_opening=opening,
        at_ms=7,
    )


def delete(number: int) -> DeleteQuarantined:
    return DeleteQuarantined(number=number, region_id=str(REGION), epoch=1, root=ROOT, at_ms=7)


async def test_given_a_folder_in_use_when_ordered_then_it_stays_until_the_region_left() -> None:
    async with starting() as start:
        node = await start(MemoryStore())
        assert await node.order(created(1)) == [None]
        node.write_row()

        lived_in = await node.order(quarantine(2))
        borrowing = await node.order(closed(3), opened(4, 2, NEW, (ROOT,)))
        borrowed = await node.order(quarantine(5, 1, 2))
        left = await node.order(closed(6, 2), quarantine(7, 1, 2))

        assert (lived_in, borrowing, borrowed) == (
            ["action-not-allowed"],
            [None, None],
            ["action-not-allowed"],
        )
        assert left == [None, None]
        assert (node.is_there(ROOT), node.is_there(HELD), node.is_there(NEW)) == (False, True, True)


async def test_given_a_region_that_is_lost_here_when_ordered_then_what_it_would_read_stays() -> (
    None
):
    """An order to open it comes again: it may find its other folders then."""
    async with starting() as start:
        node = await start(MemoryStore())
        await node.order(created(1), closed(2))
        node.disk.remove(f"{ROOT}/manifest-1-1-1")
        lost = await node.order(opened(3, 2, NEW, (ROOT,)))
        fence = max(name for name in node.disk.list(ROOT) if name.startswith("fence"))

        refused = await node.order(quarantine(4, int(fence.split("-")[2]), 2))

        assert (lost, fence.split("-")[1], refused) == (
            ["region-lost"],
            "2",
            ["action-not-allowed"],
        )


async def test_given_a_fence_that_was_raised_since_when_ordered_then_it_stays() -> None:
    async with starting() as start:
        node = await start(MemoryStore())
        await node.order(created(1), closed(2), opened(3, 2), closed(4, 2))

        assert await node.order(quarantine(5)) == ["stale-epoch"]
        assert node.is_there(ROOT)


@pytest.mark.parametrize("restarts", [False, True])
async def test_given_a_folder_that_was_deleted_when_orders_come_late_then_none_makes_it_again(
    restarts: bool,
) -> None:
    """The journal has the last order of the region: what was given before it is refused."""
    async with starting() as start:
        node = await start(MemoryStore())
        await node.order(created(10), closed(11))
        assert await node.order(quarantine(12), delete(13)) == [None, None]
        if restarts:
            node.media.crash()
            node = await start(node.media)

        late = [*await node.order(created(9)), *await node.order(opened(12, 1))]
        with pytest.raises(MetaError, match="stale-epoch"):
            await node.order(created(99), term=TERM - 1)

        assert late == ["outcome-unknown"] * 2
        assert not node.is_there(ROOT)
        assert not node.is_there(HELD)


@pytest.mark.parametrize("borrows", [False, True])
async def test_given_a_route_that_names_a_folder_in_quarantine_when_opened_then_it_comes_back(
    borrows: bool,
) -> None:
    async with starting() as start:
        node = await start(MemoryStore())
        await node.order(created(1), closed(2), quarantine(3))
        order = opened(4, 2, NEW, (ROOT,)) if borrows else opened(4, 2)

        assert await node.order(order) == [None]
        assert await node.order(delete(5)) == [None]

        assert (node.is_there(ROOT), node.is_there(HELD)) == (True, False)
        (slot,) = node.regions
        assert (slot.state, slot.order.root) == ("open", NEW if borrows else ROOT)


async def test_given_orders_again_when_taken_then_the_stored_answer_is_given() -> None:
    async with starting() as start:
        node = await start(MemoryStore())
        await node.order(created(1), closed(2), quarantine(3))

        assert await node.order(quarantine(3)) == [None]
        assert await node.order(quarantine(4)) == [None]
        assert await node.order(delete(5), delete(6)) == [None, None]
        assert await node.order(delete(6)) == [None]


async def test_given_a_crash_at_any_operation_then_no_late_order_makes_a_folder_that_went() -> None:
    """The rename may be on disk and its answer not. The order is then given again, by a number that
    is higher; once it was answered, nothing that was given before is done."""
    async with starting() as start:
        for die_at in count(1):
            node, is_answered = await start(MemoryStore()), False
            await node.order(created(1), closed(2))
            disk = DyingDisk(node.media, die_at)
            dies = await start(node.media, disk)
            disk.armed = True
            with suppress(PowerLossError):
                is_answered = await dies.order(quarantine(4), delete(5)) == [None, None]
            node.media.crash()
            again = await start(node.media)

            assert again.is_there(ROOT) + again.is_there(HELD) <= 1
            late = await again.order(created(3))
            if is_answered:
                assert (late, again.is_there(ROOT)) == (["outcome-unknown"], False)
                assert die_at > 10
                return
            await again.order(closed(6))
            names = again.disk.list(ROOT) if again.is_there(ROOT) else []
            openings = [int(name.split("-")[2]) for name in names if name.startswith("fence")]
            if openings:
                assert await again.order(quarantine(7, max(openings))) in (
                    [None],
                    ["already-exists"],
                )
            assert await again.order(delete(8)) == [None]


class DyingDisk(MemoryDisk):
    """The disk of a process that dies at an operation, once it is armed."""

    def __init__(self, media: MemoryStore, die_at: int) -> None:
        super().__init__(media, self._count)
        self.armed = False
        self._left = die_at

    def _count(self, operation: str, path: str) -> None:
        if self.armed:
            self._left -= 1
            if self._left <= 0:
                raise PowerLossError
