"""A statement refused below a region's floor is counted at its node, by its frontend."""

import httpx

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements.query import key_of
from metasrv_base.wire.node.nodes import RefusedStat
from tests.dataplane.frontend.bench import T, running
from tests.dataplane.frontend.tables import TABLE_ID, feed_table

ROW = {"id": 1, "a": 1, "b": "x"}


async def test_given_a_floor_that_rose_when_late_statements_come_then_they_are_counted() -> None:
    async with running() as bench:
        later = feed_table(schema_version=2)
        await bench.raise_floor(later, 2)

        async def meet(request: httpx.Request) -> None:
            bench.way.meet = None
            bench.tell(later)

        bench.way.meet = meet
        written = await bench.service.writes.rows(T, Op.INSERT, [ROW], "one")
        newest = bench.node.refusals.stats()
        bench.tell(feed_table(schema_version=1))
        bench.way.meet = meet
        read = await bench.service.reads.by_key(T, lambda layout: key_of(layout.key, ["1"]))

        assert (written.schema_version, read.schema_version) == (2, 2)
        mine = RefusedStat(table_id=TABLE_ID, holder_id="fe-1", count=1)
        assert newest == [mine]
        reads = RefusedStat(table_id=TABLE_ID, holder_id=None, count=1)
        assert bench.node.refusals.stats() == [reads, mine]
