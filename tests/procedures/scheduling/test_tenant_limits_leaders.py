"""The limits of tenants across leaders: many ask at once, and a leader dies in between."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from keys.commit.change import change
from keys.commit.txn import snapshot
from keys.model.catalogs import CatalogLimits, CatalogNameKey
from keys.model.log import CatalogAltered
from keys.model.records import ClientRequirements, ProcedureOutcome
from keys.model.tables import TableInfoKey
from keys.store.kv import Compare
from metasrv_base.errors import Conflict, MetaError
from procedures.engine.submit import SubmitRequest, Submitted
from procedures.kinds.tables.create_table import CREATE_TABLE, CreateTable
from procedures.machine import Kind
from procedures.scheduling.admission import Limits
from procedures.scheduling.tenant_limits import TenantReservations
from tests.fakes.cluster import DEADLINE_MS, LIMITS, Cluster
from tests.procedures.harness.scenarios import with_schema
from tests.procedures.harness.tables import NODES, table_info, table_route
from tests.procedures.kinds.runs import finish
from tests.sim.loop import SimLoop, run

ASKED = 32
FREE = 3
WIDE = Limits(running_max=LIMITS.running_max, queue_max=2 * ASKED)


async def limited(cluster: Cluster, fence: Compare, tables: int) -> None:
    key = CatalogNameKey("main")
    read = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    info = read.must(key)
    tenant = info.as_tenant(info.own_settings, CatalogLimits(tables=tables))
    await cluster.change(fence, change(read, CatalogAltered(info=tenant)))


def create(number: int) -> CreateTable:
    info = table_info(number, f"new{number}", len(NODES))
    return CreateTable(info=info, route=table_route(number, NODES))


async def outcome(cluster: Cluster, number: int) -> str:
    try:
        history = await finish(cluster, "create_table", create(number), {})
    except Conflict as error:
        return error.code
    return history.outcome.value


def tables_of(cluster: Cluster) -> int:
    start, end = TableInfoKey.under()
    return sum(start <= item.key < end for item in cluster.kv.dump())


def many_at_once(tables: int = FREE) -> tuple[Counter[str], int]:
    """The outcomes of creates at once, and how many tables there are then."""
    found: list[Any] = []

    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, limits=WIDE)
        fence = await cluster.bootstrap()
        await with_schema(cluster, fence)
        await limited(cluster, fence, tables)
        await cluster.started()
        ended = await asyncio.gather(
            *(outcome(cluster, number) for number in range(2_000, 2_000 + ASKED))
        )
        found.extend((Counter(ended), tables_of(cluster)))

    run(main, 1)
    counts, there = found
    return counts, there


def under_way_at_a_death(tables: int = FREE) -> tuple[Counter[str], int]:
    """Creates wait for a node that is silent when their leader dies; others ask the next one."""
    found: list[Any] = []

    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, limits=WIDE)
        fence = await cluster.bootstrap()
        await with_schema(cluster, fence)
        await limited(cluster, fence, tables)
        await cluster.started()
        cluster.plane.nodes["dn-3"].silent = True
        for number in range(2_000, 2_000 + FREE - 1):
            work = partial(finish, cluster, "create_table", create(number), {})
            cluster.loop.spawn(cluster.leader.node, work())
        await cluster.clock.sleep_ms(500)
        assert len(cluster.living()) == FREE - 1

        cluster.loop.kill(cluster.leader.node)
        await cluster.started("meta-2")
        asked = (outcome(cluster, number) for number in range(3_000, 3_000 + ASKED))

        async def hear() -> str:
            await cluster.clock.sleep_ms(500)
            cluster.plane.nodes["dn-3"].silent = False
            return "heard"

        ended = (await asyncio.gather(*asked, hear()))[:-1]
        await cluster.quiet()
        found.extend((Counter(ended), tables_of(cluster)))

    run(main, 1)
    counts, there = found
    return counts, there


def test_given_free_places_when_many_ask_at_once_then_as_many_succeed() -> None:
    assert many_at_once() == (
        Counter({"tenant-limit": ASKED - FREE, ProcedureOutcome.SUCCEEDED.value: FREE}),
        FREE,
    )


@pytest.mark.slow
def test_given_creates_under_way_when_their_leader_dies_then_the_next_counts_them() -> None:
    assert under_way_at_a_death() == (
        Counter({"tenant-limit": ASKED - 1, ProcedureOutcome.SUCCEEDED.value: 1}),
        FREE,
    )


def test_given_the_last_place_when_one_key_asks_twice_at_once_then_one_procedure() -> None:
    """The second finds no place: the first has it, and is on its way to the store."""
    found: list[Any] = []

    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, limits=WIDE)
        fence = await cluster.bootstrap()
        await with_schema(cluster, fence)
        await limited(cluster, fence, 1)
        manager = (await cluster.started()).manager
        client = ClientRequirements(
            submitted_by="a", request_id="r", statement={}, idempotency="e" * 64
        )

        async def ask(number: int, client: ClientRequirements) -> Submitted | MetaError:
            attempt = SubmitRequest(cluster.ids.procedure_id(), client, "body")
            try:
                return await manager.submit(CREATE_TABLE, create(number), attempt)
            except MetaError as error:
                return error

        other = client.model_copy(update={"idempotency": "f" * 64})
        asked = (ask(2_000, client), ask(2_001, client), ask(2_002, other), ask(2_003, client))
        found.extend(await asyncio.gather(*asked))

    run(main, 1)
    first, second, refused, third = found
    assert (first.replayed, second.replayed, third.replayed) == (False, True, True)
    assert first.procedure == second.procedure == third.procedure
    assert refused.code == "tenant-limit"


class Forgetful(TenantReservations):
    """Counts what the catalog has, and nobody who is about to add to it."""

    def reserve(self, procedure: str, kind: Kind[Any], state: Any, locks: Any) -> None:
        pass


class WithoutRecords(TenantReservations):
    """A new leader that does not look at what its predecessor has begun."""

    def take_in(self, procedure: str, record: Any, kind: Any) -> None:
        pass


PLANTED: dict[str, tuple[type[TenantReservations], str, Callable[[], tuple[Counter[str], int]]]] = {
    "a limit passed by two at once": (Forgetful, "reserve", many_at_once),
    "a limit passed behind a leader's death": (WithoutRecords, "take_in", under_way_at_a_death),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_of_limits_when_many_ask_then_there_are_too_many_tables(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty, name, scenario = PLANTED[bug]
    monkeypatch.setattr(TenantReservations, name, vars(faulty)[name])

    _, there = scenario()

    assert there > FREE
