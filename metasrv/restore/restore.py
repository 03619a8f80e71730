"""A restore: a backup becomes a cluster of its own under an empty prefix (docs/protocols.md P8)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from keys.model.cluster import ClusterRecord, RestoreMark
from keys.model.log import CatalogVersion
from keys.store.kv import Kv
from metasrv.restore.backup_facts import BackupFacts, BackupItems, read_backup_facts, unusable
from metasrv.restore.found_regions import FoundRegions
from metasrv.restore.restore_chunks import RestoreChunks
from metasrv.restore.restore_store import RestoreStore
from metasrv.restore.restored_values import Restoration
from metasrv_base.clock import Clock
from metasrv_base.ids import Ids

DEADLINE_MS = 10_000
"""Deadline of one transaction."""
Open = Callable[[], Iterable[bytes]]
"""Opens the file anew and yields its parts: it is read twice."""
Tell = Callable[[str, int, int | None], None]
"""Hears of the progress: words, done, of."""


@dataclass(frozen=True, slots=True)
class RestoreDeps:
    kv: Kv
    clock: Clock
    ids: Ids


@dataclass(frozen=True, slots=True)
class RestoredCluster:
    """The result of a restore."""

    cluster_id: str
    facts: BackupFacts
    version: CatalogVersion
    parked: int
    """Procedures that wait for an operator."""
    ended: int
    """Procedures that were ended with a history."""
    purged: int
    """Dropped tables that cannot be undropped any more."""


def nothing(words: str, done: int, total: int | None) -> None:
    """Tells nobody."""


async def restore(
    deps: RestoreDeps,
    opened: Open,
    *,
    inventories: FoundRegions | None = None,
    again: bool = False,
    tell: Tell = nothing,
) -> RestoredCluster:
    """Reads all of the file before it writes anything, and holds one transaction at a time.

    *inventories*: folders of nodes of the cluster of the backup; numbers go on above theirs.

    Raises Refused `invalid-backup`, Conflict `prefix-not-empty`, Unavailable. What was written when
    it is killed or raises behind its first transaction is no cluster; run it again with *again*.
    """
    facts = read_backup_facts(opened(), lambda done, total: tell("read", done, total))
    now_ms, cluster_id = deps.clock.wall_ms(), deps.ids.procedure_id()
    mark = RestoreMark(restore_id=cluster_id, source=facts.source, begun_at_ms=now_ms)
    store = RestoreStore(deps.kv, deps.clock, mark, DEADLINE_MS)
    await store.begin(again=again)
    before = facts.version.model_copy(update={"at_ms": max(facts.version.at_ms, now_ms)})
    chunks = RestoreChunks(before, cluster_id)
    rules = Restoration(facts.source.cluster_id, now_ms, facts.base, inventories or FoundRegions())
    done = 0
    items = BackupItems(opened())
    restored = (rules.of(item) for item in items)
    for puts in chunks.of(part for some in (restored, rules.rest()) for part in some):
        await store.write(puts)
        done += len(puts)
        tell("write", min(done, facts.keys), facts.keys)
    header = items.header
    if header is None or (header.cluster_id, header.revision, header.keys) != (
        facts.source.cluster_id,
        facts.source.revision,
        facts.keys,
    ):
        raise unusable("it is another file than when it was read first")
    cluster = ClusterRecord(cluster_id=cluster_id, created_at_ms=now_ms, restored=facts.source)
    # Later than the last update, as if a leader had closed that time: it is of no update.
    version = chunks.version.model_copy(update={"at_ms": chunks.version.at_ms + 1})
    await store.adopt(cluster, version)
    return RestoredCluster(cluster_id, facts, version, rules.parked, rules.ended, rules.purged)
