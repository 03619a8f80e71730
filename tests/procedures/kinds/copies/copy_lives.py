"""Lives of the kinds that add and remove copies, on the table of the crash enumeration."""

from collections.abc import Awaitable, Callable
from typing import Any

from keys.model.records import ProcedureHistory
from keys.store.kv import Compare
from procedures.kinds.failover.change_copies import ChangeCopies
from procedures.machine import ProcedureState
from tests.fakes.cluster import Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.copies.copied_scenarios import JOIN
from tests.procedures.harness.copies.copied_tables import with_copied_table
from tests.procedures.harness.ends import TABLE
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

Given = Callable[[Cluster, Compare], Awaitable[None]]
Roles = list[tuple[str, str]]


def lives(
    *states: tuple[str, ProcedureState], given: Given = with_copied_table
) -> tuple[list[ProcedureHistory], Cluster]:
    """The procedures of these kinds and states, one after the other, to their ends."""
    lived: list[tuple[list[ProcedureHistory], Cluster]] = []

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, given, {})
        ends = [await finish(cluster, kind, state, {}) for kind, state in states]
        assert await cluster.quiet()
        lived.append((ends, cluster))

    run(main, 1)
    return lived[0]


def regions(cluster: Cluster) -> list[dict[str, Any]]:
    route = history_of(cluster.kv._store.log_from(1)).family("__table_route")[(str(TABLE),)]
    return list(route["region_routes"])


def roles(cluster: Cluster, region: int) -> Roles:
    """Node and role of each copy beside the leader."""
    copies = regions(cluster)[region].get("copies", ())
    return [(copy["node"], copy["role"]) for copy in copies]


def code_of(history: ProcedureHistory) -> str | None:
    return None if history.last.error is None else history.last.error.code


def leaves_eligible(region: str) -> ChangeCopies:
    """dn-2 leaves the set of *region*, below the minimum, with every acknowledged row."""
    return ChangeCopies.model_validate(
        {
            **JOIN.model_dump(),
            "region_id": region,
            "root": f"/disks/dn-2/regions/{region}-1",
            "change": "leave",
            "eligible": True,
        }
    )
