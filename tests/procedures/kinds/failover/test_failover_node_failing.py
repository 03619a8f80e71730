"""Children that fail at once: each next one is begun after a pause, and no record grows."""

from dataclasses import replace
from typing import Any

import pytest

from metasrv_base.errors import Refused
from procedures.context import Context
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.namespaces.drop_schema import DropSchema
from procedures.kinds.registry import KINDS
from procedures.machine import Kind, Outcome, ProcedureState, Step
from tests.fakes.cluster import Cluster
from tests.procedures.harness.scenarios import with_dead_node, with_dropped_table, with_table
from tests.procedures.kinds.failover.runs import start
from tests.procedures.kinds.log_bytes import sizes_of
from tests.procedures.kinds.runs import Given, undrop
from tests.sim.loop import SimLoop, run

NODE = FailoverNode(node="dn-1", reason="test")
MINUTE_MS = 60_000
TRIES_MAX = 8  # pauses of 1, 2, 4, 8, 16 and 32 s


class Moody:
    """The first step of a kind, which fails until it is well."""

    def __init__(self, kind: Kind[Any]) -> None:
        self.well, self.tries = False, 0
        self._step = kind.steps[kind.first]
        self.kind = replace(kind, steps={**kind.steps, kind.first: self._moody()})

    def _moody(self) -> Step[Any]:
        return replace(self._step, act=self.act)

    async def act(self, state: ProcedureState, at: Context) -> Outcome[Any]:
        self.tries += 1
        if not self.well:
            raise Refused("ddl-too-large")
        return await self._step.act(state, at)


async def with_dropped_table_of_dead_node(cluster: Cluster, fence: Any) -> None:
    await with_dropped_table(cluster, fence)
    cluster.plane.nodes["dn-1"].die()


@pytest.mark.parametrize(
    ("kind", "state", "child", "given"),
    [
        (
            "drop_schema",
            DropSchema(catalog="main", name="public", schema_id=1024, cascade=True),
            "drop_table",
            with_table,
        ),
        (
            "failover_node",
            FailoverNode(node="dn-1", reason="test"),
            "failover_table",
            with_dead_node,
        ),
        ("undrop_table", undrop(), "failover_table", with_dropped_table_of_dead_node),
    ],
    ids=["drop_schema", "failover_node", "undrop_table"],
)
def test_given_children_that_fail_at_once_then_the_next_comes_after_a_pause(
    kind: str, state: ProcedureState, child: str, given: Given
) -> None:
    async def main(loop: SimLoop) -> None:
        moody = Moody(KINDS[child])
        cluster = Cluster(loop, {**KINDS, child: moody.kind})
        await given(cluster, await cluster.bootstrap())
        await cluster.started()
        parent = await start(cluster, kind, state)

        await cluster.clock.sleep_ms(MINUTE_MS)
        waits = [one.kind for _, e in cluster.leader.manager.living() for one in e.live.waiting]

        assert 1 < moody.tries <= TRIES_MAX
        assert waits == ["child"]
        assert max(sizes_of(cluster, parent)) < 8_192

        moody.well = True
        assert await cluster.quiet()
        assert cluster.living() == []

    run(main, 1)
