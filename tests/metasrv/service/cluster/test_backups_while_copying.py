"""Backups that begin while the keys of a large version are written: each holds all of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeGuard

import pytest

from keys.catalog.catalog import Catalog
from keys.catalog.old_log import OldLog
from keys.catalog.stored_keys import stored_keys
from keys.commit.copying import StoredLarge, uncopied_of
from keys.model.cluster import LeaderRecord, NodeKey, Sequence, SequenceKey
from keys.model.staging.parts import LargeUpdate, LargeUpdateKey
from keys.model.tables import TableInfo, TableNameKey
from keys.store.kv import Put, Request, TxnAnswer
from keys.value import StoredModel, encode
from metasrv.check.check_backup import STORE_RULES, check_backup
from metasrv.check.check_input import CheckInput, read_facts
from metasrv.check.rule import violations_of
from metasrv.restore.restore import restore
from metasrv.service.cluster import backups
from metasrv.service.state.state import ServerState
from metasrv_base.backup.backup_file import BackupKey
from metasrv_base.errors import Refused, Unavailable, Unknown
from tests.keys.catalog.snapshots import Cluster, Term, plain, scenario
from tests.keys.commit.large_changes import BY, SMALL, large, mixed, schema_of_tables
from tests.keys.commit.leading_committer import DEADLINE_MS, Store, elect
from tests.keys.model.samples import NODE
from tests.metasrv.api.rig import state_of
from tests.metasrv.restore.backups import Target, file_of, pieces

FIRST_ID = 2_000
TABLES = 4
IDS = ("table_id", "schema_id")
RULES = [rule for rule in STORE_RULES if not rule.id.startswith(("leader", "candidate"))]
"""There are no leases here."""
AtChunk = Callable[[Store, Request], Awaitable[TxnAnswer]]


async def prepared(at: Cluster) -> Term:
    """A leader of four tables."""
    node = NODE.model_copy(update={"node_id": "dn-1"})
    sequences = (Put(bytes(SequenceKey(name)), encode(Sequence(next=3_000))) for name in IDS)
    writes = (Put(bytes(NodeKey("datanode", "dn-1")), encode(node)), *sequences)
    await at.store.apply(Request(writes=writes))
    term = await at.lead()
    term.committer.sizes = SMALL
    entries = schema_of_tables("big", FIRST_ID, TABLES)
    await term.committer.commit(large(term.follower, *entries), procedure=BY)
    return term


def is_chunk(request: Request) -> bool:
    """Whether it writes some of the keys: it compares how many are."""
    start, end = LargeUpdateKey.under()
    return any(start <= one.key < end and one.mod_revision for one in request.compares)


def strike(at: Cluster, number: int, do: AtChunk) -> list[Request]:
    """*do* stands for the chunk of that number. Returns the chunks, as they are sent."""
    chunks: list[Request] = []

    async def send(store: Store, request: Request) -> TxnAnswer:
        if is_chunk(request):
            chunks.append(request)
            if len(chunks) - 1 == number:
                return await do(store, request)
        return await store.apply(request)

    at.store.faults = [send] * 200
    return chunks


async def changed(term: Term) -> None:
    txn = large(term.follower, *mixed(term.follower.catalog, FIRST_ID))
    await term.committer.commit(txn, procedure=BY)


def chunks_of_one() -> int:
    found: list[int] = []

    async def main(at: Cluster) -> None:
        term = await prepared(at)
        chunks = strike(at, -1, Store.txn)  # type: ignore[arg-type]
        await changed(term)
        found.append(len(chunks))

    scenario(main)
    return found[0]


CHUNKS = chunks_of_one()


def facts_now(store: Store) -> CheckInput:
    return read_facts(store.dump(), store.revision)


def faults(facts: CheckInput) -> list[str]:
    return [fault.line for fault in violations_of(RULES, facts)]


def is_being_written(store: Store) -> bool:
    return stored_large(store) is not None


def uncopied(store: Store) -> LargeUpdate:
    large = stored_large(store)
    assert large is not None
    return large.value


def stored_large(store: Store) -> StoredLarge | None:
    start, end = LargeUpdateKey.under()
    return uncopied_of(item for item in store.dump() if start <= item.key < end)


async def file(state: ServerState) -> bytes:
    backup = await backups.begun(state)
    try:
        return b"".join([part async for part in backup.parts()])
    finally:
        backup.ended()


async def holds_exactly(data: bytes, flipped: Catalog) -> None:
    """The backup is of that version, and so is what is restored from it."""
    checked = check_backup([data])
    facts = checked.facts
    assert [one.line for one in violations_of(RULES, facts)] == []
    stored = dict(stored_keys(flipped))
    written = {str(key): encode(value) for key, value in stored.items()}
    logged = {item.name: item.raw.value for item in facts.items if item.key and item.key.is_logged}
    assert logged == written

    target = Target()
    await restore(target.deps, pieces(data))
    assert {one.rule for one in target.violations()} == {"node-adopted"}
    restored = target.facts()
    names = TableNameKey
    assert restored.of(names) == {key: one for key, one in stored.items() if type(key) is names}
    columns = {id: info.columns for id, info in restored.infos().items()}
    assert columns == {one.table_id: one.columns for one in stored.values() if is_info(one)}
    log = OldLog(target.kv, DEADLINE_MS)
    window = await log.window(Catalog(), flipped.version)
    content = window.at(flipped.version)
    assert {str(k): encode(v) for k, v in stored_keys(content)} == written


def is_info(value: StoredModel) -> TypeGuard[TableInfo]:
    return isinstance(value, TableInfo)


async def refused_by_hand(store: Store) -> None:
    """A file of what is stored at such a moment, which no server makes, restores nothing."""
    keys = [BackupKey.of(*item) for item in store.dump()]
    target = Target()
    with pytest.raises(Refused) as raised:
        await restore(target.deps, pieces(file_of(keys, store.revision, of="c")))
    assert "were being written" in str(raised.value.facts["reason"])
    assert target.stored == {}


@pytest.mark.parametrize("number", range(CHUNKS))
def test_given_any_chunk_when_backed_up_before_it_then_the_whole_version_is_held_and_restored(
    number: int,
) -> None:
    async def main(at: Cluster) -> None:
        term = await prepared(at)
        before = term.follower.catalog.version
        state = state_of("ms-2", at.store, at.store.clock)  # type: ignore[arg-type]
        backing: list[asyncio.Task[bytes]] = []
        seen: list[CheckInput] = []

        async def look(store: Store, request: Request) -> TxnAnswer:
            assert is_being_written(store)
            seen.append(facts_now(store))
            await refused_by_hand(store)
            backing.append(at.loop.spawn("backup", file(state)))
            await store.clock.sleep_ms(2 * backups.LOOK_MS)
            assert not backing[0].done(), "it waits for the keys"
            return await store.apply(request)

        strike(at, number, look)
        await changed(term)

        flipped = term.follower.catalog
        assert flipped.version == before + 1
        (facts,) = seen
        assert faults(facts) == []
        assert facts.fold.catalog is not None
        assert plain(facts.fold.catalog) == plain(flipped)
        await holds_exactly(await backing[0], flipped)

    scenario(main)


@pytest.mark.parametrize("number", range(CHUNKS))
def test_given_a_leader_that_dies_at_any_chunk_when_backed_up_then_the_next_one_makes_it_whole(
    number: int,
) -> None:
    async def main(at: Cluster) -> None:
        term = await prepared(at)
        state = state_of("ms-2", at.store, at.store.clock)  # type: ignore[arg-type]

        async def die(store: Store, request: Request) -> TxnAnswer:
            await elect(store, "rival")
            raise Unknown()

        strike(at, number, die)
        with pytest.raises(Unknown):
            await changed(term)
        at.store.faults = []
        assert is_being_written(at.store)
        assert faults(facts_now(at.store)) == []
        backing = at.loop.spawn("backup", file(state))
        await at.store.clock.sleep_ms(4 * backups.LOOK_MS)
        assert not backing.done(), "nobody leads"
        other = await at.lead()

        await holds_exactly(await backing, other.follower.catalog)
        assert other.follower.catalog.version == term.follower.catalog.version

    scenario(main)


LEADER = LeaderRecord(server="ms-1", url="http://127.0.0.1:1", lease="")


@pytest.mark.parametrize(
    ("leader", "who"),
    [
        (None, "no server leads, which would write them"),
        (LEADER, "the leader is writing them"),
    ],
)
def test_given_keys_that_nobody_writes_when_backed_up_then_503_soon_and_its_place_is_free(
    leader: LeaderRecord | None, who: str
) -> None:
    async def main(at: Cluster) -> None:
        term = await prepared(at)
        state = state_of("ms-2", at.store, at.store.clock)  # type: ignore[arg-type]

        async def die(store: Store, request: Request) -> TxnAnswer:
            await elect(store, "rival")
            raise Unknown()

        strike(at, 1, die)
        with pytest.raises(Unknown):
            await changed(term)

        state.heard(leader)
        began_ms = at.store.clock.mono_ms()
        with pytest.raises(Unavailable) as raised:
            await backups.begun(state)
        waited_ms = at.store.clock.mono_ms() - began_ms
        assert backups.STALLED_MS <= waited_ms <= backups.STALLED_MS + backups.LOOK_MS
        large = uncopied(at.store)
        left = f"{large.keys - large.copied} of {large.keys} keys of version {large.version}"
        assert raised.value.facts == {
            "what": "A backup",
            "reason": f"{left} are not written; {who}",
        }
        assert state.backups == 0

    scenario(main)


@pytest.mark.parametrize(("chunk_ms", "is_whole"), [(1_200, True), (1_900, False)])
def test_given_keys_that_are_written_slowly_when_backed_up_then_it_waits_ten_seconds(
    chunk_ms: int, is_whole: bool
) -> None:
    assert CHUNKS * 1_200 < backups.WAIT_MS < CHUNKS * 1_900

    async def main(at: Cluster) -> None:
        term = await prepared(at)
        state = state_of("ms-2", at.store, at.store.clock)  # type: ignore[arg-type]
        state.heard(LEADER)
        backing: list[asyncio.Task[bytes]] = []

        async def send(store: Store, request: Request) -> TxnAnswer:
            if is_chunk(request):
                if not backing:
                    backing.append(at.loop.spawn("backup", file(state)))
                await store.clock.sleep_ms(chunk_ms)
            return await store.apply(request)

        at.store.faults = [send] * 200
        began_ms = at.store.clock.mono_ms()
        if is_whole:
            await changed(term)
            await holds_exactly(await backing[0], term.follower.catalog)
            return
        changing = at.loop.spawn("batch", changed(term))
        while not backing:
            await at.store.clock.sleep_ms(1)
        with pytest.raises(Unavailable, match="the leader is writing them"):
            await backing[0]
        assert at.store.clock.mono_ms() - began_ms <= backups.WAIT_MS + backups.LOOK_MS
        await changing

    scenario(main)
