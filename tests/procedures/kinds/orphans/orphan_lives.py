"""Lives of the procedure that removes orphans, on folders of a fake cluster."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from keys.commit.change import change, route_changed
from keys.commit.txn import Txn, snapshot
from keys.model.tables import RegionRoute, TableRouteKey
from procedures.context import Context
from procedures.kinds.orphans.remove_orphans import REMOVE_ORPHANS, RemoveOrphans
from procedures.machine import Kind, Outcome
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.procedures.harness.ends import TABLE
from tests.procedures.kinds.orphans.orphan_scenarios import (
    DELETE,
    LEFT,
    MOVED,
    with_orphans,
    with_quarantine,
)
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

Act = Callable[[Cluster], Awaitable[None]]


async def nothing(cluster: Cluster) -> None:
    """Leaves everything as it is."""


async def commit(cluster: Cluster, txn: Txn) -> None:
    committer = cluster.leader.committer
    assert committer is not None
    await committer.commit(txn)


async def name_again(cluster: Cluster) -> None:
    """As an operator would who restores a route: the region is led from the folder of before."""
    key = TableRouteKey(TABLE)
    read = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    route = read.must(key)

    def named(region: RegionRoute) -> RegionRoute:
        update = {"leader": "dn-1", "root": LEFT, "epoch": region.epoch + 1}
        return region.model_copy(update=update)

    regions = tuple(named(one) for one in route.region_routes if one.region_id == MOVED)
    await commit(cluster, change(read, route_changed(route, regions)))


@dataclass
class Life:
    """A procedure that has ended."""

    cluster: Cluster
    result: Mapping[str, Any] | None
    outcome: str

    @property
    def folders(self) -> set[str]:
        return set(self.cluster.plane.storage.folders)

    @property
    def quarantined(self) -> set[str]:
        return {root for root, _ in self.cluster.plane.storage.quarantined}

    @property
    def waiting(self) -> Mapping[str, str]:
        assert self.result is not None
        return dict(self.result["waiting"])


def life(state: RemoveOrphans, before: Act = nothing, kind: Kind[Any] = REMOVE_ORPHANS) -> Life:
    """*before*: a coroutine function that is run when the leader leads."""
    lived: list[Life] = []

    async def main(loop: SimLoop) -> None:
        given = with_quarantine if state.deletes else with_orphans
        cluster = await begun(loop, given, {kind.name: kind})
        await cluster.detected()
        await before(cluster)
        end = await finish(cluster, kind.name, state, {})
        lived.append(Life(cluster, end.result, end.outcome.value))

    run(main, 1)
    return lived[0]


@dataclass
class NamedMeanwhile:
    """The route names a folder between its judgement and the transaction of that, once."""

    clusters: list[Cluster] = field(default_factory=list)

    async def meet(self, cluster: Cluster) -> None:
        self.clusters.append(cluster)

    async def judge(self, state: RemoveOrphans, at: Context) -> Outcome[RemoveOrphans]:
        outcome = await REMOVE_ORPHANS.steps["prove"].act(state, at)
        if self.clusters:
            await name_again(self.clusters.pop())
        return outcome

    @property
    def kind(self) -> Kind[RemoveOrphans]:
        steps = REMOVE_ORPHANS.steps
        return replace(
            REMOVE_ORPHANS, steps={**steps, "prove": replace(steps["prove"], act=self.judge)}
        )


def named_meanwhile() -> Life:
    """A life in which a folder in quarantine is named while it is judged, to be deleted."""
    meanwhile = NamedMeanwhile()
    return life(DELETE, meanwhile.meet, meanwhile.kind)
