"""Schemas by order: in place, where batches are ordered, and answered once."""

from typing import Any

import pytest

from dataplane.datanode.orders.journal import open_journal
from dataplane.datanode.orders.journal_format import Joined
from dataplane.datanode.orders.orders import OrderExecutor
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.errors import Conflict, Refused, Unavailable
from metasrv_base.wire.node.orders import (
    OpenRegion,
    OrderRequest,
    OriginColumn,
    RegionColumn,
    SetSchema,
)
from tests.dataplane.datanode.orders.fake_regions import told_of_term
from tests.dataplane.datanode.upkeep.bench import Bench, bench
from tests.dataplane.region.rig import REGION_ID, batch, header

__all__ = ["bench"]
SEATS = RegionColumn(id=3, type="int32", nullable=True)


def schema_order(bench: Bench, **changes: Any) -> SetSchema:
    (slot,) = bench.regions
    order = SetSchema(
        number=2,
        region_id=str(REGION_ID),
        epoch=1,
        schema_version=2,
        schema_floor=2,
        columns=slot.order.columns,
    )
    return order.model_copy(update=changes)


async def test_given_a_schema_order_when_carried_out_then_older_batches_are_refused(
    bench: Bench,
) -> None:
    await bench.write("s1")

    held = await bench.regions.carry_out(schema_order(bench))

    assert held == bench.owner.region.stats().version
    with pytest.raises(Conflict) as refusal:
        await bench.owner.write(header("s2", schema_version=1), batch({b"k": (1, None)}))
    assert refusal.value.code == "schema-version-stale"


async def test_given_an_order_to_open_what_is_open_when_it_brings_columns_then_nothing_stops(
    bench: Bench,
) -> None:
    (slot,) = bench.regions
    known = slot.order.model_dump(exclude={"op", "replaces", "number", "schema_version", "columns"})
    columns = [*slot.order.columns, SEATS]
    order = OpenRegion(**known, number=2, schema_version=2, columns=columns)
    before = bench.owner.region

    assert await bench.regions.carry_out(order) is None

    assert bench.owner.region is before
    assert [column.id for column in before.spec.columns] == [1, 2, 3]
    assert before.schema.version == 2


async def test_given_an_order_with_a_column_in_the_place_of_another_then_rows_convert_and_jobs_know(
    bench: Bench,
) -> None:
    text = RegionColumn(
        id=3, type="string", nullable=False, origin_columns=[OriginColumn(id=1, type="int64")]
    )
    await bench.owner.write(header("s1"), batch({b"before": (7, None)}))

    order = schema_order(bench, schema_floor=1, columns=[text], mark="reorg")
    await bench.regions.carry_out(order)
    await bench.owner.write(header("s2"), batch({b"unaware": (8, None)}).drop_columns(["c2"]))

    region = bench.owner.region
    assert region.reader.get([b"before", b"unaware"]).column("c3").to_pylist() == ["7", "8"]
    assert region.snapshot("reorg").columns == [text]


async def test_given_a_region_that_is_not_open_or_moved_on_when_told_then_it_is_not_done(
    bench: Bench,
) -> None:
    with pytest.raises(Unavailable):
        await bench.regions.carry_out(schema_order(bench, region_id=str(REGION_ID + 1)))
    with pytest.raises(Conflict):
        await bench.regions.carry_out(schema_order(bench, epoch=2))
    with pytest.raises(Refused):
        await bench.regions.carry_out(schema_order(bench, schema_floor=3))

    assert bench.owner.region.schema.floor == 1


async def test_given_a_schema_order_when_repeated_also_after_a_restart_then_the_answer_is_stored(
    bench: Bench,
) -> None:
    await bench.write("s1")
    journal = open_journal(MemoryDisk(store := MemoryStore()), "/n", "dn-1")
    await journal.commit([Joined(cluster_id="c")])
    told = OrderRequest(
        cluster_id="c", node_id="dn-1", term=1, orders=[schema_order(bench, mark="reorg")]
    )

    first = await (await told_of_term(OrderExecutor(journal, bench.regions))).execute(told)
    bench.owner.region.close_mark("reorg")
    again = await (await told_of_term(OrderExecutor(journal, bench.regions))).execute(told)
    store.crash()
    journal = open_journal(MemoryDisk(store), "/n", "dn-1")
    later = await (await told_of_term(OrderExecutor(journal, bench.regions))).execute(told)

    assert first.results[0].floor_version == bench.owner.region.stats().version
    assert first == again == later
    assert not bench.owner.region.has_marks, "it was not done again"
