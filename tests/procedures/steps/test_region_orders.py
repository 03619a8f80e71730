"""Orders to regions go to all nodes at once, and a field of a table's options goes all the way: no
order and no answer leaves it out.

Each set names what one model has on purpose and the others have not. A new field fails here until
it is carried everywhere, or named.
"""

import asyncio
from collections import Counter
from dataclasses import replace

from keys.model.records import ClientRequirements
from keys.model.tables import TableInfo
from metasrv_base.wire.api.tables import TableBody, TableSpec
from metasrv_base.wire.node.orders import CreateRegion, OpenRegion, SetSchema
from procedures.steps.region_orders import NODES_AT_ONCE_MAX, create_order, order_all
from tests.metasrv.api.fakes import FakeNodes
from tests.procedures.harness.scenarios import with_schema
from tests.procedures.harness.tables import table_info, table_route
from tests.procedures.kinds.runs import begun, context
from tests.sim.loop import SimLoop, run

BEFORE = {"replaces", "borrows", "unannounced"}
"""Roots that a region leaves or reads: known when it is made or opened, and not later."""
FIXED = {"root", "table_id", "key_columns", "engine", "engine_options"}
"""They never change, so no order of a schema brings them."""
GONE = {"dead_indexes"}
"""A region that is made has none."""
MARKS = {"mark", "reserves_version", "close_marks"}
LEASE = {"lease"}
COPIES = {"role", "copies"}
"""Copies learn a schema from the log of their leader."""
STORED = {
    *("format", "table_id", "state", "created_at_ms", "schema_floor", "dropping"),
    *("next_column_id", "next_index_id", "next_constraint_id"),
    *("placement_id", "tablespace_id", "colocation", "own_copies"),
}
"""Shown under another name, or of no use to clients."""


def test_given_a_field_of_a_table_then_each_order_of_a_region_carries_it() -> None:
    create, opened, schema = (
        set(order.model_fields) for order in (CreateRegion, OpenRegion, SetSchema)
    )

    assert create ^ opened == BEFORE | GONE
    assert create ^ schema == {"replaces"} | FIXED | LEASE | COPIES | GONE | MARKS


def test_given_a_field_of_a_table_then_its_body_shows_it() -> None:
    shown = set(TableBody.model_fields)

    assert set(TableSpec.model_fields) - shown == {"if_not_exists"}
    assert set(TableInfo.model_fields) - shown == STORED


def test_given_regions_on_many_nodes_when_ordered_then_at_once_and_one_request_for_each_node() -> (
    None
):
    names = tuple(f"dn-{number:02}" for number in range(NODES_AT_ONCE_MAX + 8))
    info, route = table_info(2_048, "wide", 2 * len(names)), table_route(2_048, names * 2)
    client = ClientRequirements(submitted_by="anna", request_id="r", statement={})

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_schema, {})
        nodes = FakeNodes()
        nodes.gate.clear()
        at = context(cluster, client, "create")
        at = replace(at, ports=replace(at.ports, nodes=nodes))
        ordering = loop.spawn("leader", order_all(at, info, route.region_routes, create_order))
        await cluster.clock.sleep_ms(60_000)
        under_way = Counter(node for node, _ in nodes.asked)
        nodes.gate.set()
        answers = await asyncio.wait_for(ordering, 1)

        assert under_way == dict.fromkeys(names[:NODES_AT_ONCE_MAX], 2), "nobody has answered yet"
        assert answers.silent == {}
        assert len(answers.results) == len(route.region_routes)

    run(main, 1)
