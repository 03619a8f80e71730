"""The end of a dropped table: against an undrop, with borrowed folders, with nodes away."""

import asyncio
from typing import Any

import pytest

from keys.commit.change import change, route_changed
from keys.commit.txn import snapshot
from keys.model.records import ProcedureOutcome
from keys.model.tables import TableRouteKey
from keys.store.kv import Compare
from metasrv_base.errors import Refused
from metasrv_base.wire.node.orders import DropRegion
from procedures.kinds.tables.purge_table import PurgeTable
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.fakes.datanodes.disk import Folder
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import PURGE, with_dropped_table, with_table
from tests.procedures.harness.tables import drop_table_keys, region_ids
from tests.procedures.kinds.runs import Given, begun, finish, undrop
from tests.sim.loop import SimLoop, run

BORROWED = "/disks/dn-3/regions/old"


async def with_borrowing_table(cluster: Cluster, fence: Compare) -> None:
    """Its first region was dropped while it still read from another folder."""
    await with_table(cluster, fence)
    key = TableRouteKey(TABLE)
    seen = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    route = seen.must(key)
    region = route.region_routes[0].model_copy(update={"borrows": (BORROWED,)})
    await cluster.change(fence, change(seen, route_changed(route, (region,))))
    cluster.plane.storage.folders[BORROWED] = Folder(fence=1)
    await drop_table_keys(cluster, fence, TABLE)


@pytest.mark.parametrize(
    "kinds", [("purge_table", "undrop_table"), ("undrop_table", "purge_table")]
)
@pytest.mark.case("greptime 104")
def test_given_an_undrop_and_a_purge_at_once_then_one_wins_and_the_other_finds_nothing(
    kinds: tuple[str, str],
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table, {})
        states = {"purge_table": PURGE, "undrop_table": undrop()}

        first, second = await asyncio.gather(
            *(finish(cluster, kind, states[kind], {}) for kind in kinds)
        )

        assert first.last.submission < second.last.submission
        assert (first.outcome, second.outcome) == (
            ProcedureOutcome.SUCCEEDED,
            ProcedureOutcome.FAILED,
        )
        assert second.last.error is not None
        assert second.last.error.code == "table-not-found"
        is_back = kinds[0] == "undrop_table"
        assert len(cluster.plane.storage.folders) == (3 if is_back else 0)
        agreement = history_of(cluster.kv._store.log_from(1))
        assert (str(TABLE),) in agreement.family("__table_info") or not is_back
        assert [*agreement.wrong, *cluster.plane.violations] == []

    run(main, 1)


@pytest.mark.parametrize(
    ("state", "given"),
    [
        (PURGE.model_copy(update={"dropped_by": "an older drop"}), with_dropped_table),
        (PURGE, with_table),
    ],
    ids=["dropped anew", "alive"],
)
def test_given_another_drop_than_the_one_that_is_due_when_purged_then_nothing_changes(
    state: PurgeTable, given: Given
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, given, {})
        before = history_of(cluster.kv._store.log_from(1)).versions

        history = await finish(cluster, "purge_table", state, {})

        assert history.last.error is not None
        assert history.last.error.code == "table-not-found"
        assert history_of(cluster.kv._store.log_from(1)).versions == before
        assert len(cluster.plane.storage.folders) == 3
        assert cluster.plane.told == []

    run(main, 1)


def test_given_a_region_that_borrowed_when_purged_then_both_folders_go() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_borrowing_table, {})

        history = await finish(cluster, "purge_table", PURGE, {})

        assert left_behind(history.result) == []
        assert cluster.plane.storage.folders == {}
        dropped = [order.root for _, order in cluster.plane.told if isinstance(order, DropRegion)]
        assert len(dropped) == 4
        assert BORROWED in dropped

    run(main, 1)


def test_given_a_node_that_is_away_when_purged_then_its_folders_are_told_of() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table, {})
        cluster.plane.nodes["dn-1"].die()

        history = await finish(cluster, "purge_table", PURGE, {})

        assert history.outcome is ProcedureOutcome.SUCCEEDED
        roots = [f"/disks/dn-1/regions/{region}-1" for region in region_ids(TABLE, 2)]
        assert left_behind(history.result) == roots
        assert sorted(cluster.plane.storage.folders) == roots

    run(main, 1)


def test_given_a_node_that_will_not_delete_when_purged_then_its_folders_are_told_of() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table, {})
        cluster.plane.nodes["dn-1"].refuses["drop"] = Refused("invalid-request", reason="strange")

        history = await finish(cluster, "purge_table", PURGE, {})

        assert history.outcome is ProcedureOutcome.SUCCEEDED
        roots = [f"/disks/dn-1/regions/{region}-1" for region in region_ids(TABLE, 2)]
        assert left_behind(history.result) == roots

    run(main, 1)


def test_given_a_node_that_is_silent_for_a_while_when_purged_then_it_is_told_again() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table, {})
        silent = cluster.plane.nodes["dn-1"]
        silent.silent = True
        attempt = cluster.ask(cluster.leader, lambda _: finish(cluster, "purge_table", PURGE, {}))
        await cluster.clock.sleep_ms(2_000)
        kept = len(cluster.plane.storage.folders)
        silent.silent = False
        history = await attempt

        assert kept == 2
        assert left_behind(history.result) == []
        assert cluster.plane.storage.folders == {}

    run(main, 1)


def left_behind(result: Any) -> list[str]:
    found: list[str] = result["left_behind"]
    return found
