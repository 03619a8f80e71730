"""A group that waits for its copies: writers that come later are told for whom it waits."""

import asyncio
import weakref

import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

from dataplane.datanode.copies.led_region import LeaderClocks, LedRegion
from dataplane.datanode.membership.membership import Membership, NodeIdentity
from dataplane.datanode.metrics import NodeMetrics
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.region_owner import STALLED_MS, RegionOwner
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.slot import Slot
from dataplane.datanode.regions.store import DiskStore
from dataplane.region.copies.leader_view import CopyName
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.group import Applied
from dataplane.region.following.copy_region import StreamedRecords
from dataplane.region.following.leading import lead_new
from metasrv_base.errors import Conflict, MetaError, Unavailable, Unknown
from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from metasrv_base.wire.node.orders import OpenRegion, RegionColumn
from tests.dataplane.region.rig import REGION_ID, SPEC, A, B, batch, header, place
from tests.fakes.clock import FakeClock

SECOND = CopyName("dn-2", B)
COPIES = RegionCopies(
    version=1,
    min_in_sync=1,
    members=[
        OrderedCopy(node="dn-1", root=A, role="leader"),
        OrderedCopy(node="dn-2", root=B, role="in-sync"),
    ],
)


class WaitingBench:
    """A leader with one copy, which is acknowledged for by hand."""

    def __init__(self) -> None:
        self.clock, self.news = FakeClock(), asyncio.Event()
        clocks = LeaderClocks(self.clock.mono_ms, lambda: True)
        self.led = LedRegion(lead_new(place(), SPEC, 1), COPIES, clocks, self.has_news)
        self.led.is_readable = True
        region, now_ms = self.led.region, self.clock.mono_ms
        self.owner = RegionOwner(REGION_ID, region, lambda: True, now_ms, writes=self.led)
        store = DiskStore(MemoryDisk(MemoryStore()), self.clock, "/n")
        self.node = NodeRegionSet(store, RegionLeases("i"), self.clock, lambda _: None)
        self.order = OpenRegion(
            number=1,
            region_id=str(REGION_ID),
            epoch=1,
            root=A,
            table_id=1,
            schema_version=1,
            schema_floor=1,
            key_columns=[1],
            columns=[RegionColumn(id=1, type="int64", nullable=False)],
            copies=COPIES,
        )
        self.node._slots[REGION_ID] = Slot(self.order, "open", self.owner, self.led)

    def has_news(self, _: LedRegion) -> None:
        self.news.set()

    def acknowledge(self) -> None:
        log = self.led.region.log_history
        records = StreamedRecords(1, log, self.led.view.common, ())
        self.led.answered(SECOND, records, self.led.view.end)

    def waiting(self) -> dict[str, float]:
        """The metric of groups that are under way."""
        me = Membership(NodeIdentity("dn-1", "i", "http://dn-1", "z", "/n"), "c")
        text = NodeMetrics().text(self.node, me).decode()
        (family,) = (
            each
            for each in text_string_to_metric_families(text)
            if each.name == "datanode_regions_waiting"
        )
        return {sample.labels["on"]: sample.value for sample in family.samples}


async def test_given_a_group_that_waits_for_a_copy_when_another_comes_late_then_it_is_told_so() -> (
    None
):
    bench = WaitingBench()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(bench.owner.run())
        first = group.create_task(bench.owner.write(header("s1"), batch({b"k": (1, "x")})))
        await bench.news.wait()
        assert bench.led.waits_for == [SECOND]
        assert bench.waiting() == {"copies": 1, "disk": 0}
        bench.clock.advance(STALLED_MS)

        try:
            await bench.owner.write(header("s2"), batch({b"l": (1, "x")}))
        except Unavailable as error:
            facts = error.facts

        bench.acknowledge()
        assert isinstance(await first, Applied)
        running.cancel()
    assert facts["reason"] == "it waits for its copies"
    assert (facts["nodes"], facts["waited_ms"]) == (["dn-2"], STALLED_MS)
    assert not bench.led.waits_for
    assert bench.waiting() == {"copies": 0, "disk": 0}


async def test_given_too_few_copies_when_an_order_to_lead_has_another_schema_then_it_is_done() -> (
    None
):
    """The copies are told whom to follow once it is: without them there are never more."""
    bench = WaitingBench()
    learner = COPIES.members[1].model_copy(update={"role": "learner"})
    members = [COPIES.members[0], learner]
    copies = RegionCopies(version=2, min_in_sync=2, members=members)
    columns = [*bench.order.columns, RegionColumn(id=7, type="int64", nullable=True)]
    update = {"number": 2, "schema_version": 2, "columns": columns, "copies": copies}
    async with asyncio.TaskGroup() as group:
        running = group.create_task(bench.owner.run())

        await bench.node.carry_out(bench.order.model_copy(update=update))

        running.cancel()
    assert not bench.led.view.may_order
    assert 7 in {column.id for column in bench.led.region.schema.columns or ()}


LEFT = COPIES.model_copy(
    update={
        "version": 3,
        "min_in_sync": 2,
        "members": [
            COPIES.members[0],
            COPIES.members[1].model_copy(update={"role": "learner", "eligible": True}),
        ],
    }
)
"""The copy has left the set, which is below its minimum then."""


def of_two_at_least() -> WaitingBench:
    """A region whose groups count with two copies."""
    bench = WaitingBench()
    bench.led.on_doubt = bench.owner.doubt
    bench.led.hear(COPIES.model_copy(update={"version": 2, "min_in_sync": 2}))
    bench.news.clear()
    return bench


async def test_given_a_group_when_its_copy_leaves_and_may_lead_then_its_outcome_is_unknown() -> (
    None
):
    """The row is not readable meanwhile, and counts once the copy is back."""
    bench = of_two_at_least()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(bench.owner.run())
        first = group.create_task(written_by(bench, "s1"))
        await bench.news.wait()

        bench.led.hear(LEFT)
        outcome = await first
        rows = [bench.led.region.stats().rows]
        waits_for = bench.led.waits_for
        bench.acknowledge()
        await asyncio.sleep(0)
        rows += [bench.led.region.stats().rows]
        bench.led.hear(COPIES.model_copy(update={"version": 4, "min_in_sync": 2}))
        while not await done(bench.owner):  # noqa: ASYNC110  # until a thread has settled the group
            await asyncio.sleep(0)
        running.cancel()
    assert isinstance(outcome, Unknown)
    assert outcome.facts["reason"] == "too-few-copies"
    assert (rows, waits_for) == ([0, 0], [SECOND])
    assert bench.led.region.stats().rows == 1, "the copy is back, with the row"


async def done(owner: RegionOwner) -> bool:
    """Whether a change was done, and not refused."""
    try:
        await owner.change(lambda: None)
    except Unavailable:
        return False
    return True


async def test_given_a_group_in_doubt_then_what_waits_behind_it_is_refused_and_an_end_is_not() -> (
    None
):
    """An order that waits for a region keeps all its other orders waiting, and those of regions
    that a request names with it."""
    bench = of_two_at_least()
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.owner.run())
        first = group.create_task(written_by(bench, "s1"))
        await bench.news.wait()
        change = group.create_task(done(bench.owner))
        behind = group.create_task(written_by(bench, "s2"))
        await asyncio.sleep(0)

        bench.led.hear(LEFT)

        assert not await change
        assert not await done(bench.owner)
        written = await behind
        assert isinstance(await first, Unknown)
        bench.led.end(Conflict("stale-epoch", reason="closed"))
        await bench.owner.change(lambda: None, stops=True)
    assert isinstance(written, Unavailable)
    assert written.code == "too-few-copies"
    assert bench.owner.stopped_by is not None


async def written_by(bench: WaitingBench, statement: str) -> Applied | MetaError:
    try:
        return await bench.owner.write(header(statement), batch({b"k": (1, "x")}))
    except MetaError as error:
        return error


async def test_given_a_group_in_doubt_then_of_its_rows_the_record_alone_is_kept_and_counted() -> (
    None
):
    """With it came one that was refused; another waits behind it, and one comes later."""
    bench, large, kept = of_two_at_least(), "x" * (4 << 20), list[weakref.ref[pa.RecordBatch]]()

    async def refused(statement: str, epoch: int = 1) -> str:
        rows = batch({b"k": (1, large)})
        kept.append(weakref.ref(rows))
        try:
            await bench.owner.write(header(statement, epoch), rows)
        except MetaError as error:
            return error.code
        raise AssertionError

    budget, before = bench.led.region.place.budget, pa.total_allocated_bytes()
    async with asyncio.TaskGroup() as group:
        first = [group.create_task(refused("s1")), group.create_task(refused("s2", epoch=9))]
        await asyncio.sleep(0)
        running = group.create_task(bench.owner.run())
        await bench.news.wait()
        behind = group.create_task(refused("s3"))
        await asyncio.sleep(0)
        counted = [budget.bytes]

        bench.led.hear(LEFT)
        codes = [await task for task in (*first, behind)]
        codes.append(await refused("s4"))

        counted += [budget.bytes]
        alive, held = [rows() for rows in kept], pa.total_allocated_bytes() - before
        bench.led.hear(COPIES.model_copy(update={"version": 4, "min_in_sync": 2}))
        bench.acknowledge()
        while not await done(bench.owner):  # noqa: ASYNC110  # until a thread has settled the group
            await asyncio.sleep(0)
        running.cancel()
    assert codes == [*["outcome-unknown"] * 2, *["too-few-copies"] * 2]
    assert alive == [None] * 4
    assert held < len(large) // 2, "the record is no memory of Arrow"
    assert [size // len(large) for size in counted] == [0, 1]
    assert budget.bytes < 2 * len(large), "it is counted as a row in memory"
    assert bench.led.region.stats().rows == 1


async def test_given_a_copy_that_may_lead_when_an_order_has_another_schema_then_not_taken() -> None:
    """It would wait until the copy is back, and keep all orders of the region waiting."""
    bench = WaitingBench()
    left = COPIES.members[1].model_copy(update={"role": "learner", "eligible": True})
    bench.led.hear(RegionCopies(version=2, min_in_sync=2, members=[COPIES.members[0], left]))

    with pytest.raises(Unavailable) as refused:
        await bench.led.declare(bench.led.region.schema)

    assert refused.value.code == "too-few-copies"
