"""A cluster in order gives no violation, whatever it holds and however deep the look."""

import asyncio
import shutil
from typing import Any

import pytest

from keys.commit.staging import ENTRIES
from keys.key import Range
from keys.model.catalogs import SchemaNameKey
from keys.model.cluster import LeaderKey, NodeRecord
from keys.model.log import CatalogUpdateKey, CatalogVersionKey
from keys.model.records import ProcedureHistoryKey
from keys.model.removed import RemovedTableRouteKey
from keys.model.snapshot.snapshots import SnapshotPartKey, sealed
from keys.model.staging.parts import BatchPartKey, LargeUpdateKey
from keys.store.scan import scan
from metasrv.check import collect as collect_module
from metasrv.check.check_input import read_facts
from metasrv.check.collect import check
from metasrv.check.rules_procedures import COLLECTED_MS
from metasrv.cli.tools.check import CLEAN, exit_code
from metasrv_base.wire.node.inspect import Inspection, InspectRequest
from tests.keys.model.samples import PROCEDURE
from tests.metasrv.check.breaking.break_large import (
    AHEAD_MS,
    BATCH,
    SCHEMAS,
    large_version,
    made,
    schema_made,
    stage,
    staged_batch,
    unnamed_for_an_hour,
)
from tests.metasrv.check.breaking.break_snapshots import compacted, put_snapshots
from tests.metasrv.check.cluster import DEADLINE_MS, DROPPED, Cluster


@pytest.mark.parametrize("deep", [False, True])
async def test_given_a_cluster_in_order_when_checked_then_nothing_is_found(
    cluster: Cluster, deep: bool
) -> None:
    checked = await check(cluster.kv, cluster, cluster.clock, deep=deep)

    assert [one.line for one in checked.violations] == []
    assert exit_code(checked) == CLEAN
    assert cluster.looks == 2, "one look at each of two nodes"


async def test_given_a_time_that_was_closed_when_checked_then_nothing_is_found(
    cluster: Cluster,
) -> None:
    await cluster.edit(CatalogVersionKey(), at_ms=cluster.clock.wall_ms() + 3_600_000)

    checked = await check(cluster.kv, cluster, cluster.clock, deep=False)

    assert [one.line for one in checked.violations] == []


@pytest.mark.parametrize("copied", range(len(SCHEMAS) + 1))
async def test_given_a_version_whose_keys_are_being_written_when_checked_then_nothing_is_found(
    cluster: Cluster, copied: int
) -> None:
    version = await large_version(cluster, copied=copied)

    checked = await check(cluster.kv, cluster, cluster.clock, deep=False)

    assert [one.line for one in checked.violations] == []
    stored, revision = await scan(cluster.kv, Range(b"", b"\0"), deadline_ms=DEADLINE_MS)
    facts = read_facts(stored, revision)
    assert facts.fold.catalog is not None
    assert facts.fold.catalog.version == version
    assert all(facts.has(SchemaNameKey("main", info.name)) for info in SCHEMAS)


async def test_given_a_batch_whose_commands_are_in_parts_when_checked_then_nothing_is_found(
    cluster: Cluster,
) -> None:
    await staged_batch(cluster)
    await schema_made(cluster, 1_071)
    cluster.clock.advance(COLLECTED_MS + AHEAD_MS)
    await schema_made(cluster, 1_072)

    assert await lines(cluster) == []


@pytest.mark.parametrize("age_ms", [0, COLLECTED_MS - AHEAD_MS])
async def test_given_parts_that_are_to_be_collected_when_checked_then_nothing_is_found(
    cluster: Cluster, age_ms: int
) -> None:
    await stage(cluster, BATCH, ENTRIES, made())
    await schema_made(cluster, 1_071)
    cluster.clock.advance(age_ms)
    await schema_made(cluster, 1_072)

    assert await lines(cluster) == []


async def test_given_parts_that_an_earlier_leader_has_left_then_the_time_of_the_next_one_counts(
    cluster: Cluster,
) -> None:
    await unnamed_for_an_hour(cluster, BATCH)
    leader = LeaderKey()
    await cluster.put(leader, await cluster.read(leader), lease=cluster.lease)

    assert await lines(cluster) == []


async def test_given_parts_of_a_procedure_that_has_just_ended_when_checked_then_nothing_is_found(
    cluster: Cluster,
) -> None:
    await unnamed_for_an_hour(cluster, f"{PROCEDURE}.7.1")
    history = ProcedureHistoryKey(PROCEDURE)
    await cluster.put(history, await cluster.read(history))

    assert await lines(cluster) == []


async def lines(cluster: Cluster) -> list[str]:
    checked = await check(cluster.kv, cluster, cluster.clock, deep=False)
    return [one.line for one in checked.violations]


@pytest.mark.parametrize("versions", [(1,), (3,), (2, 4), (7,)])
async def test_given_snapshots_and_a_log_above_them_when_checked_then_nothing_is_found(
    cluster: Cluster, versions: tuple[int, ...]
) -> None:
    await compacted(cluster, *versions)
    await cluster.put_raw(bytes(SnapshotPartKey(5, 9)), sealed(5, 9, ()))

    checked = await check(cluster.kv, cluster, cluster.clock, deep=False)

    assert [one.line for one in checked.violations] == []
    assert checked.facts.fold.catalog is not None


@pytest.mark.parametrize("later", [False, True])
async def test_given_a_log_that_begins_behind_a_large_version_when_checked_then_nothing_is_found(
    cluster: Cluster, later: bool
) -> None:
    """Its keys were written behind its update, which is deleted with what says until when."""
    version = await large_version(cluster)
    stored, revision = await scan(cluster.kv, Range(b"", b"\0"), deadline_ms=DEADLINE_MS)
    catalog = read_facts(stored, revision).fold.catalog
    assert catalog is not None
    await put_snapshots(cluster, catalog)
    parts, _ = await scan(cluster.kv, BatchPartKey.under(), deadline_ms=DEADLINE_MS)
    await cluster.delete(
        *(CatalogUpdateKey(number) for number in range(1, version + 1)),
        *(BatchPartKey.parse(item.key) for item in parts),
        LargeUpdateKey(version),
    )
    if later:
        await schema_made(cluster, 1_071)
    clean = await lines(cluster)
    await cluster.edit(SchemaNameKey("main", SCHEMAS[0].name), comment="rogue")

    assert clean == []
    assert any("log-together" in line for line in await lines(cluster))


async def test_given_rows_in_files_segments_and_borrowed_roots_when_deep_then_all_are_counted(
    cluster: Cluster,
) -> None:
    checked = await check(cluster.kv, cluster, cluster.clock, deep=True)

    live = {root.region_id: root.live for root in checked.facts.world.roots.values()}
    rows = {region: found.rows for region, found in live.items() if found}
    served = {region: one.reader.digest() for region, one in cluster.regions.items()}
    assert sum(rows.values()) == 200 + 180
    assert {region: (digest.rows, digest.hex) for region, digest in served.items()} == {
        region: (found.rows, found.checksum)
        for region, found in live.items()
        if found and region in served
    }


async def test_given_a_restored_table_that_was_dropped_before_it_opened_then_its_files_are_right(
    cluster: Cluster,
) -> None:
    """The adoption said in the route at which epoch it opens, and nobody has opened it since."""
    key = RemovedTableRouteKey(DROPPED)
    route = (await cluster.read(key)).route
    regions = tuple(
        region.model_copy(update={"epoch": region.epoch + 1}) for region in route.region_routes
    )
    await cluster.edit(key, route=route.model_copy(update={"region_routes": regions}))

    checked = await check(cluster.kv, cluster, cluster.clock, deep=True)

    assert [one.line for one in checked.violations if one.rule.startswith("root-")] == []
    assert checked.facts.world.roots.keys() >= {region.root for region in regions}


async def test_given_a_purged_table_when_checked_then_only_the_folders_it_left_are_named(
    cluster: Cluster,
) -> None:
    folders = await cluster.purge_table(DROPPED)
    left = await check(cluster.kv, cluster, cluster.clock, deep=False)
    for folder in folders:
        shutil.rmtree(folder)
    gone = await check(cluster.kv, cluster, cluster.clock, deep=False)

    assert [(one.rule, one.subject) for one in left.violations] == [
        ("folder-orphan", folder) for folder in folders
    ]
    assert folders
    assert gone.violations == ()


async def test_given_what_a_check_found_when_shown_then_it_is_short(cluster: Cluster) -> None:
    """`asyncio.run` makes the repr of what its main task returns."""
    await cluster.put_raw(b"__surprise/1", b"x" * 5_000)

    checked = await check(cluster.kv, cluster, cluster.clock)

    assert checked.violations
    assert len(repr(checked)) + len(repr(checked.facts)) < 300


async def test_given_nodes_when_looked_at_then_requests_are_made_for_one_inspector_each(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, most, made = [0], [0], collect_module.inspect_request

    def counted(*given: Any, **options: Any) -> InspectRequest:
        now[0] += 1
        most[0] = max(most[0], now[0])
        return made(*given, **options)

    class Slow(Cluster):
        async def inspect(self, node: NodeRecord, request: InspectRequest) -> Inspection:
            for _ in range(5):
                await asyncio.sleep(0)
            inspected = await super().inspect(node, request)
            now[0] -= 1
            return inspected

    monkeypatch.setattr(collect_module, "inspect_request", counted)
    monkeypatch.setattr(collect_module, "INSPECTED_AT_ONCE", 1)
    slow = Slow(cluster.kv, cluster.folder, cluster.clock, reports=cluster.reports)

    facts = await collect_module.collect(slow.kv, slow, deep=False)

    assert (now[0], most[0]) == (0, 1)
    assert len(facts.world.folders) == 2
