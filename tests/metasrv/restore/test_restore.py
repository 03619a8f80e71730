"""A restored cluster: what is there, what is passed over, and what never half is."""

from collections.abc import Callable
from typing import Any

import pytest

from keys.model.cluster import (
    ClusterKey,
    LeaderKey,
    LeaderRecord,
    NodeKey,
    SequenceKey,
    SettingKey,
    SettingRecord,
)
from keys.model.holders import HolderKey, HolderRecord
from keys.model.log import CatalogUpdateKey, CatalogVersionKey
from keys.model.records import (
    IdempotencyKey,
    ProcedureHistoryKey,
    ProcedureKey,
    ProcedureOutcome,
    ProcedurePhase,
)
from keys.model.removed import RemovedTableInfoKey
from keys.model.snapshot.snapshots import SnapshotPartKey, SnapshotVersionKey
from keys.model.tables import RegionState, TableInfoKey, TableNameKey, TableRouteKey
from keys.store.kv import Put, Request
from keys.value import encode
from metasrv.check.rule import Severity
from metasrv.restore.restore import restore
from metasrv.restore.restored_values import ELEMENT_JUMP, SCHEMA_JUMP, SEQUENCE_JUMP
from metasrv_base.backup.backup_file import BackupKey
from metasrv_base.errors import Conflict, Refused
from tests.keys.model.samples import CHILD, DIGEST, PROCEDURE
from tests.metasrv.check.cluster import CLUSTER_ID, DEADLINE_MS, DROPPED, FLIGHTS, WEATHER
from tests.metasrv.restore.backups import Backup, Target, file_of, pieces


async def restored(backup: Backup) -> Target:
    target = Target()
    await restore(target.deps, pieces(backup.data))
    return target


async def test_given_a_backup_when_restored_then_the_check_finds_only_nodes_to_adopt(
    backup: Backup,
) -> None:
    target = await restored(backup)

    found = target.violations()

    assert {(one.rule, one.severity) for one in found} == {("node-adopted", Severity.WARNING)}
    assert {one.subject for one in found} == {
        str(NodeKey("datanode", node)) for node in ("dn-1", "dn-2")
    }


async def test_given_a_backup_when_restored_then_it_is_another_cluster_and_says_of_which(
    backup: Backup,
) -> None:
    target = Target()
    seen: list[tuple[str, int, int | None]] = []

    made = await restore(
        target.deps,
        pieces(backup.file(made_at_ms=77)),
        tell=lambda *progress: seen.append(progress),
    )

    facts = target.facts()
    record = facts.get(ClusterKey())
    assert record is not None
    assert record.cluster_id == made.cluster_id != CLUSTER_ID
    assert record.restored is not None
    assert (record.restored.cluster_id, record.restored.made_at_ms) == (CLUSTER_ID, 77)
    assert {words for words, _, _ in seen} == {"read", "write"}
    assert seen[-1][1] <= (seen[-1][2] or 0)


async def test_given_tables_when_restored_then_every_number_is_past_those_of_the_backup(
    backup: Backup,
) -> None:
    before = {id: backup.value(TableInfoKey(id)) for id in (FLIGHTS, WEATHER)}
    sequences = {name: backup.value(SequenceKey(name)) for name in ("table_id", "schema_id")}
    target = await restored(backup)

    facts = target.facts()

    for table_id, old in before.items():
        new = facts.infos()[table_id]
        assert new.next_column_id == old.next_column_id + ELEMENT_JUMP
        assert new.next_index_id == old.next_index_id + ELEMENT_JUMP
        assert new.next_constraint_id == old.next_constraint_id + ELEMENT_JUMP
        assert new.schema_version == new.schema_floor == old.schema_version + SCHEMA_JUMP
        same = {"columns", "name", "partition", "primary_key", "indexes"}
        assert new.model_dump(include=same) == old.model_dump(include=same)
    for name, sequence in sequences.items():
        now = facts.get(SequenceKey(name))
        assert now is not None
        assert now.next == sequence.next + SEQUENCE_JUMP


async def test_given_regions_when_restored_then_none_is_open_and_no_node_has_a_say(
    backup: Backup,
) -> None:
    target = await restored(backup)

    facts = target.facts()

    states = {r.state for route in facts.routes().values() for r in route.region_routes}
    nodes = facts.of(NodeKey).values()
    assert states == {RegionState.LOST}
    assert {node.restored_from for node in nodes} == {CLUSTER_ID}
    assert all(node.cordon is not None for node in nodes)


async def test_given_leases_and_registrations_when_restored_then_they_are_of_the_old_cluster(
    backup: Backup,
) -> None:
    holder = HolderRecord(
        holder_id="fe-1", incarnation="1", address="http://f", version="1", registered_at_ms=1
    )
    setting = SettingRecord(
        name="history_bytes_max", value=1 << 30, version=3, changed_by="anna", changed_at_ms=9
    )
    more = {HolderKey("fe-1"): holder, SettingKey(setting.name): setting}
    target = Target()
    await restore(target.deps, pieces(backup.file(more=more)))

    facts = target.facts()

    assert not any(name.startswith(("__election", "__schema_holder")) for name in target.stored)
    assert facts.get(SettingKey(setting.name)) == setting
    assert facts.has(IdempotencyKey(DIGEST))
    assert facts.has(ProcedureHistoryKey(PROCEDURE))


async def test_given_a_dropped_table_when_restored_then_it_is_purged_and_its_id_stays_taken(
    backup: Backup,
) -> None:
    target = await restored(backup)

    facts = target.facts()

    assert not facts.has(RemovedTableInfoKey(DROPPED))
    assert facts.fold.catalog is not None
    assert DROPPED not in facts.fold.catalog.tables
    sequence = facts.get(SequenceKey("table_id"))
    assert sequence is not None
    assert sequence.next > DROPPED


async def test_given_a_log_when_restored_then_it_goes_on_from_that_of_the_backup(
    backup: Backup,
) -> None:
    before = backup.value(CatalogVersionKey())
    target = await restored(backup)

    facts = target.facts()
    now = facts.version()

    assert now is not None
    assert now.version > before.version
    assert now.at_ms > before.at_ms
    later = [facts.log()[number] for number in range(before.version + 1, now.version + 1)]
    assert {update.origin and update.origin.by for update in later} == {"metasrv backup restore"}


async def test_given_any_key_of_the_prefix_then_refused_and_nothing_is_changed(
    backup: Backup,
) -> None:
    data = backup.data
    for key in (b"__cluster", b"__election/candidate/ms-1", b"__unknown"):
        target = Target()
        await target.kv.txn(Request(writes=(Put(key, b"{}"),)), deadline_ms=DEADLINE_MS)
        before = target.kv.revision

        with pytest.raises(Conflict) as refused:
            await restore(target.deps, pieces(data))

        assert refused.value.code == "prefix-not-empty"
        assert target.kv.revision == before


async def test_given_a_restored_cluster_when_restored_again_then_refused_with_again_too(
    backup: Backup,
) -> None:
    target, data = await restored(backup), backup.data
    before = target.kv.dump()

    for again in (False, True):
        with pytest.raises(Conflict, match="prefix-not-empty"):
            await restore(target.deps, pieces(data), again=again)

    assert target.kv.dump() == before


def _cut(data: bytes) -> bytes:
    return data[:-9]


def _foreign(data: bytes) -> bytes:
    return b"PK\x03\x04" + data


def _damaged(data: bytes) -> bytes:
    return data[:200] + bytes([data[200] ^ 1]) + data[201:]


@pytest.mark.case("input 108")
@pytest.mark.parametrize("spoil", [_cut, _foreign, _damaged])
async def test_given_a_file_that_is_no_whole_backup_then_refused_and_nothing_is_written(
    backup: Backup, spoil: Callable[[bytes], bytes]
) -> None:
    target = Target()

    with pytest.raises(Refused) as refused:
        await restore(target.deps, pieces(spoil(backup.data)))

    assert refused.value.code == "invalid-backup"
    assert target.kv.revision == Target().kv.revision


async def test_given_keys_that_no_backup_may_have_then_refused_by_name(backup: Backup) -> None:
    stored = backup.keys
    newer = [
        key.model_copy(update={"value": (key.value or "").replace('"format":1', '"format":9', 1)})
        if key.key == str(TableInfoKey(FLIGHTS))
        else key
        for key in stored
    ]
    unknown = sorted(
        [*stored, BackupKey.of(b"__tomorrow/1", b"{}", 1, 1)], key=lambda key: key.key.encode()
    )
    headless = [key for key in stored if key.key != str(ClusterKey())]
    for keys, named in ((newer, "newer"), (unknown, "__tomorrow/1"), (headless, "not begun")):
        target = Target()

        with pytest.raises(Refused) as refused:
            await restore(target.deps, pieces(file_of(keys, 99)))

        assert refused.value.code == "invalid-backup"
        assert named in str(refused.value.facts["reason"])
        assert target.stored == {}


async def test_given_another_file_at_the_second_reading_then_no_cluster(backup: Backup) -> None:
    first, second = backup.data, backup.file(made_at_ms=5)
    left = [pieces(first), pieces(second[:-1])]
    target = Target()

    with pytest.raises(Refused):
        await restore(target.deps, lambda: left.pop(0)())

    assert str(ClusterKey()) not in target.stored


async def test_given_a_server_that_was_started_meanwhile_then_it_is_not_adopted(
    backup: Backup,
) -> None:
    target, data = Target(), backup.data
    leader = LeaderRecord(server="ms-1", url="http://m", lease="1")
    begun: list[int] = []

    def opened() -> Any:
        begun.append(1)
        return pieces(data)()

    original = target.kv.txn

    async def txn(request: Request, *, deadline_ms: int) -> Any:
        if len(begun) == 2 and str(LeaderKey()) not in target.stored:
            put = Request(writes=(Put(bytes(LeaderKey()), leader.model_dump_json().encode()),))
            await original(put, deadline_ms=deadline_ms)
        return await original(request, deadline_ms=deadline_ms)

    target.kv.txn = txn  # type: ignore[method-assign]
    with pytest.raises(Conflict) as refused:
        await restore(target.deps, opened)

    assert "server" in str(refused.value.facts["reason"])
    assert str(ClusterKey()) not in target.stored


async def test_given_procedures_when_restored_then_each_is_parked_or_ended_with_a_history(
    backup: Backup,
) -> None:
    began = backup.value(ProcedureKey(CHILD))
    new = {"resumed": 0, "started_at_ms": None, "submission": 90, "locks": ()}
    never = began.model_copy(update=new)
    moves = began.model_copy(
        update={"kind": "failover_table", "submission": 91, "locks": (), "step": "open"}
    )
    undone = began.model_copy(
        update={"phase": ProcedurePhase.UNDO, "submission": 92, "locks": (), "poisoned": False}
    )
    ids = [f"019aa5d3-0000-7abc-8def-00000000000{n}" for n in (1, 2, 3)]
    more = dict(zip(map(ProcedureKey, ids), (never, moves, undone), strict=True))
    target = Target()

    made = await restore(target.deps, pieces(backup.file(more=more)))

    facts = target.facts()
    parked = facts.records()
    assert (made.parked, made.ended) == (2, 2)
    assert parked.keys() == {CHILD, ids[2]}
    assert parked[CHILD].paused_at_ms is not None
    assert parked[CHILD].controls[-1].by == "metasrv backup restore"
    assert parked[ids[2]].poisoned
    for id in ids[:2]:
        history = facts.get(ProcedureHistoryKey(id))
        assert history is not None
        assert history.outcome is ProcedureOutcome.CANCELLED
        assert "restored" in (history.last.controls[-1].reason or "")


async def test_given_names_when_restored_then_they_are_those_of_the_tables(
    backup: Backup,
) -> None:
    key = TableNameKey("main", "public", "flights")
    target = await restored(backup)

    assert target.stored[str(key)] == encode(backup.value(key))
    assert target.facts().has(TableRouteKey(FLIGHTS))


async def test_given_snapshots_of_the_catalog_when_restored_then_the_log_tells_or_the_oldest_does(
    every_backup: dict[str, Backup],
) -> None:
    kept: dict[str, list[int]] = {}
    for name, backup in every_backup.items():
        target = Target()
        await restore(target.deps, pieces(backup.data))

        facts = target.facts()
        snapshots = facts.get(SnapshotVersionKey())
        kept[name] = [ref.version for ref in snapshots.kept] if snapshots else []
        assert {one.rule for one in target.violations()} == {"node-adopted"}, name
        assert facts.fold.catalog is not None
        assert facts.infos().keys() == {FLIGHTS, WEATHER}
        assert {key.version for key in facts.of(SnapshotPartKey)} == set(kept[name])  # type: ignore[attr-defined]

    assert kept == {"whole": [], "with snapshots": [], "compacted": [2]}


async def test_given_a_log_with_a_gap_then_refused(every_backup: dict[str, Backup]) -> None:
    for name, version in (("whole", 3), ("compacted", 4)):
        keys = every_backup[name].keys
        gap = [key for key in keys if key.key != str(CatalogUpdateKey(version))]

        with pytest.raises(Refused) as refused:
            await restore(Target().deps, pieces(file_of(gap, 99)))

        assert "updates of its log" in str(refused.value.facts["reason"])
