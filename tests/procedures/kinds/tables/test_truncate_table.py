"""truncate_table while clients read and write: no half, nothing back, nothing lost."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
import structlog

from keys.model.tables import RegionState
from metasrv_base.errors import MetaError, Unavailable
from procedures.context import Context
from procedures.kinds.tables.truncate_plan import NewHomes, cut_plan
from procedures.kinds.tables.truncate_table import TruncateTable
from procedures.ports import NodeView
from tests.crash.enumeration import submit
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.nodes import FakeNode
from tests.fakes.faults import Call, Mode, Plan
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.placing.preferring import ELSEWHERE, leader_after, preferring
from tests.procedures.harness.scenario import Scenario
from tests.procedures.harness.scenarios import SCENARIOS
from tests.procedures.harness.tables import region_ids, rows_of, table_route
from tests.procedures.kinds.failover.runs import fail_over
from tests.sim.loop import SimLoop, run

CALM, GONE = (
    one for one in SCENARIOS if one.name in ("truncate_table", "truncate_table, node gone")
)
REGIONS = region_ids(TABLE, 3)
LOOK_MS = 500
CRASHES = (Mode.CRASH_BEFORE, Mode.APPLIED_CRASH, Mode.LATE, Mode.LATE_IN_TERM)


class CutOff(FakeNode):
    """Does not die: it is only reached by clients, who are served until its leases end."""

    def die(self) -> None:
        self.alive = False


@dataclass
class Client:
    """Reads and writes every region that answers, whenever it can."""

    cluster: Cluster
    first: frozenset[str] = frozenset()
    """The roots that the table had before."""
    acked: list[tuple[str, bool, str]] = field(default_factory=list)
    """Region, whether it was begun anew, and a row that was acknowledged."""
    wrong: list[str] = field(default_factory=list)

    def look(self) -> None:
        plane = self.cluster.plane
        answering = [
            (one, held)
            for one in REGIONS
            for held in plane.usable(one)
            if held.root in plane.storage.folders
        ]
        anew = {region_id: held.root not in self.first for region_id, held in answering}
        if len(set(anew.values())) > 1 or len(answering) > len(anew):
            self.wrong.append(f"at {self.cluster.clock.mono_ms()} half of it: {answering}")
        for region_id, held in answering:
            row = f"{region_id}/row-{len(self.acked)}"
            folder = plane.storage.folders[held.root]
            folder.files[row] = frozenset({row})
            if folder.fence == held.epoch:
                self.acked.append((region_id, anew[region_id], row))

    async def go_on(self) -> None:
        while True:
            self.look()
            await self.cluster.clock.sleep_ms(LOOK_MS)

    def judge(self, *, truncated: bool) -> list[str]:
        """Returns the faults: every row acknowledged in the new roots is there, and none of before;
        or, if the truncate was never taken, everything that a living node serves."""
        wrong = []
        for region in REGIONS:
            found = self.cluster.plane.rows(region)
            if found is None and not truncated:
                continue
            found = found or frozenset()
            rows = [(anew, row) for where, anew, row in self.acked if where == region]
            before = rows_of(region) | {row for anew, row in rows if not anew}
            after = {row for anew, row in rows if anew}
            wanted = after if truncated else before
            if wanted - found:
                wrong.append(f"lost: {sorted(wanted - found)}")
            if truncated and before & found:
                wrong.append(f"from before: {sorted(before & found)}")
        return wrong


@dataclass(frozen=True)
class Life:
    calls: tuple[Call, ...]
    wrong: tuple[str, ...]
    acked: tuple[int, int]
    """Numbers of rows before and after."""


def life(
    scenario: Scenario,
    plan: Plan | None = None,
    victim: str | None = None,
    node: type[FakeNode] = FakeNode,
) -> Life:
    plan = plan or Plan()
    return run(lambda loop: _life(loop, scenario, plan, victim, node), plan.at + 1)


async def _life(
    loop: SimLoop, scenario: Scenario, plan: Plan, victim: str | None, node: type[FakeNode]
) -> Life:
    cluster = Cluster(loop)
    client = Client(cluster)
    await scenario.given(cluster, await cluster.bootstrap())
    if victim is not None:
        before = cluster.plane.nodes[victim]
        plan.victim = node(victim, cluster.plane.storage, serving=before.serving)
        cluster.plane.nodes[victim] = plan.victim
    server = await cluster.started("meta-1", plan)
    client.first = frozenset(cluster.plane.storage.folders)
    cluster.plane.watch = client.look
    reading = loop.spawn("client", client.go_on())
    plan.armed = True
    await submit(cluster, server, scenario)
    wrong = [] if await cluster.quiet() else [f"never ends: {cluster.living()}"]
    if victim is not None and plan.mode is Mode.NODE_DIES:
        wrong += await fail_over(cluster, victim)
    reading.cancel()
    for late in plan.late:
        with suppress(MetaError):
            await late()
    agreement = history_of(cluster.kv._store.log_from(1))
    ended = agreement.family("__procedure_history").values()
    truncated = any(one["last"]["kind"] == "truncate_table" for one in ended)
    wrong += [*cluster.violations, *cluster.plane.violations, *agreement.wrong]
    wrong += [*client.wrong, *client.judge(truncated=truncated)]
    anew = sum(anew for _, anew, _ in client.acked)
    return Life(tuple(plan.calls), tuple(wrong), (len(client.acked) - anew, anew))


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    """Hundreds of lives would write a book."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    yield
    structlog.reset_defaults()


def deaths(scenario: Scenario) -> Iterator[tuple[Plan, str | None, type[FakeNode]]]:
    for at in range(len(life(scenario).calls)):
        yield from ((Plan(at, mode), None, FakeNode) for mode in CRASHES)
        for victim in ("dn-1", "dn-2") if scenario is CALM else ("dn-2",):
            yield from ((Plan(at, Mode.NODE_DIES), victim, kind) for kind in (FakeNode, CutOff))


@pytest.mark.crash
@pytest.mark.parametrize("scenario", [CALM, GONE], ids=lambda scenario: scenario.name)
@pytest.mark.case("online 64")
def test_given_clients_when_truncated_and_anybody_dies_then_no_half_and_nothing_lost(
    scenario: Scenario,
) -> None:
    calm = life(scenario)
    wrong = [
        (plan.at, str(plan.mode), victim, kind.__name__, found)
        for plan, victim, kind in deaths(scenario)
        if (found := life(scenario, plan, victim, kind).wrong)
    ]

    assert calm.wrong == ()
    assert min(calm.acked) > 0, "rows were acknowledged before, and after"
    assert wrong[:3] == []


async def at_once(at: Context, nodes: Collection[str], region_ids: Sequence[str]) -> None:
    """In the place of `outwait_leases`: nobody is waited for."""


def test_given_leases_that_are_not_waited_out_then_the_client_sees_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("procedures.kinds.tables.truncate_table.outwait_leases", at_once)

    found = life(CALM, Plan(2, Mode.NODE_DIES), "dn-1", CutOff)

    assert any("half of it" in text for text in found.wrong)


def test_given_a_node_that_does_not_answer_then_nobody_is_served_before_it_does() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop)
        await CALM.given(cluster, await cluster.bootstrap())
        server = await cluster.started()
        silent = cluster.plane.nodes["dn-2"]
        silent.silent = True

        await submit(cluster, server, CALM)
        await cluster.clock.sleep_ms(20_000)
        entry = server.manager.living()[0][1]
        assert (entry.held.record.step, entry.live.last_error) == ("create", "not-ready")
        assert [cluster.plane.usable(region) for region in REGIONS] == [[], [], []]

        silent.silent = False
        assert await cluster.quiet()
        assert [len(cluster.plane.usable(region)) for region in REGIONS] == [1, 1, 1]

    run(main, 1)


def node(name: str, *, alive: bool = True) -> NodeView:
    return NodeView(name, "z", f"/disks/{name}", alive, regions=0, disk_free_bytes=1 << 40)


NODES = (node("dn-1"), node("dn-2"))
ROUTES = table_route(TABLE, ("dn-1", "dn-2")).region_routes


def test_given_living_leaders_when_cut_then_each_keeps_its_region_with_an_empty_root() -> None:
    borrower = ROUTES[1].model_copy(update={"borrows": ("/disks/dn-9/r",)})

    first, second = cut_plan((ROUTES[0], borrower), NODES, again=False)

    assert (first.region.leader, first.region.epoch) == ("dn-1", 2)
    assert first.region.root == f"/disks/dn-1/regions/{REGIONS[0]}-2"
    assert first.leaves == (f"{REGIONS[0]} {ROUTES[0].root}",)
    assert (second.region.borrows, second.region.announced) == ((), False)
    assert second.leaves == (f"{REGIONS[1]} /disks/dn-9/r", f"{REGIONS[1]} {ROUTES[1].root}")


def test_given_a_leader_that_is_gone_when_cut_again_then_only_its_regions_move() -> None:
    (only,) = cut_plan(ROUTES, (node("dn-1", alive=False), node("dn-2")), again=True)

    assert (only.region.region_id, only.region.leader) == (REGIONS[0], "dn-2")
    assert only.region.state is RegionState.OPENING


def test_given_partition_groups_when_leaders_are_gone_then_each_region_goes_to_its_group() -> None:
    nodes = (node("dn-1", alive=False), node("dn-2"), node("dn-3"), node("dn-4"))
    regions = table_route(TABLE, ("dn-1", "dn-1", "dn-1")).region_routes
    groups = {0: {"dn-4": 2, "dn-3": 1}, 1: {"dn-3": 1}, 2: {"dn-1": 9, "dn-4": 1}}

    cuts = cut_plan(regions, nodes, again=False, homes=NewHomes(groups=groups))

    assert [one.region.leader for one in cuts] == ["dn-4", "dn-3", "dn-4"]
    (alone,) = cut_plan(regions[:1], nodes, again=False, homes=NewHomes(groups={1: {"dn-2": 1}}))
    assert alone.region.leader == "dn-3", "its tablespace has none there"


def test_given_nobody_alive_when_cut_then_it_is_not_begun() -> None:
    with pytest.raises(Unavailable) as caught:
        cut_plan(ROUTES, (node("dn-1", alive=False),), again=False)

    assert caught.value.code == "node-not-eligible"


def test_given_a_preferred_zone_when_truncated_without_the_leader_then_its_copy_leads() -> None:
    state = TruncateTable(catalog="main", schema_name="public", name="t", table_id=TABLE)

    preferred = leader_after("truncate_table", state, preferring("dn-3", dies="dn-1"))
    usual = leader_after("truncate_table", state, preferring(ELSEWHERE, dies="dn-1"))

    assert (preferred, usual) == ("dn-3", "dn-2")
