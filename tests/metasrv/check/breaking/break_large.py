"""Parts of a version and of a batch, written as a leader would, and what breaks their rules."""

from collections.abc import Iterable

from keys.commit.batch import PendingTxn, seal
from keys.commit.change import change
from keys.commit.packing import pack
from keys.commit.staging import ENTRIES, MEMBERS, PartsReference, parts_of
from keys.commit.txn import Read, Snapshot, Txn
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.log import CatalogUpdateKey, Entry, SchemaCreated, StagedRef
from keys.model.records import ProcedureKey
from keys.model.staging.parts import BatchPartKey, LargeUpdate, LargeUpdateKey
from keys.store.kv import Put, Request
from keys.value import StoredPart, encode
from metasrv.check.rules_procedures import COLLECTED_MS
from procedures.kinds.batch.batch import BATCH as KIND
from procedures.kinds.batch.batch import CommandBatch
from procedures.kinds.batch.members import Miss
from procedures.kinds.batch.staged_members import staged
from tests.keys.model.samples import CHILD, PROCEDURE
from tests.metasrv.check.breaking.breaking import Breakage
from tests.metasrv.check.cluster import DEADLINE_MS, Cluster

AHEAD_MS = 1_000  # commits of one moment bear times that follow each other
BATCH = "019aa5d3-1c03-7abc-8def-0123456789ab.7.1"
SCHEMAS = tuple(
    SchemaInfo(schema_id=1_060 + number, catalog="main", name=f"s{number}", created_at_ms=1)
    for number in range(3)
)
MISSES = tuple(
    Miss(kind="drop_table", name=f"main.public.none{number}", id=None) for number in range(3)
)


def made() -> tuple[Entry, ...]:
    return tuple(SchemaCreated(info=info) for info in SCHEMAS)


async def large_version(at: Cluster, *, copied: int = len(SCHEMAS)) -> int:
    """A version that makes three schemas. *copied*: of their keys, those that are written."""
    assert at.line is not None
    ref = await stage(at, BATCH, ENTRIES, made())
    member = PendingTxn(Txn(entries=made()), None, staged=ref, copies=len(SCHEMAS))
    packed = pack(at.line, [member], at.clock.wall_ms(), members_max=1)
    batch = seal(at.line, packed.after, packed.shares)
    answer = await at.kv.txn(batch.request, deadline_ms=DEADLINE_MS)
    assert answer.succeeded
    at.line = batch.head_after(answer.revision)
    version = at.line.version
    puts = [Put(bytes(SchemaNameKey("main", info.name)), encode(info)) for info in SCHEMAS]
    large = LargeUpdate(version=version, staged=ref, keys=len(puts), copied=copied)
    puts = [*puts[:copied], Put(bytes(LargeUpdateKey(version)), encode(large))]
    assert (await at.kv.txn(Request(writes=tuple(puts)), deadline_ms=DEADLINE_MS)).succeeded
    return version


async def stage(at: Cluster, batch: str, what: str, items: Iterable[StoredPart]) -> StagedRef:
    """Writes parts that nothing names yet, of an item each."""
    reference = PartsReference(batch)
    for key, raw in parts_of(batch, what, items, part_bytes=1):
        await at.put_raw(bytes(key), raw)
        reference.add(raw)
    return reference.made()


async def staged_batch(at: Cluster) -> str:
    """The procedure that lives becomes a batch whose commands are in parts; returns its key."""
    parts = await stage(at, CHILD, MEMBERS, MISSES)
    state = CommandBatch(members=(), staged=staged(MISSES, parts, ()))
    return await at.edit(
        ProcedureKey(CHILD),
        kind=KIND.name,
        step=KIND.first,
        state=state.model_dump(mode="json"),
        locks=KIND.locks(state),
    )


async def schema_made(at: Cluster, schema_id: int) -> None:
    info = SCHEMAS[0].model_copy(update={"name": f"later{schema_id}", "schema_id": schema_id})
    key = SchemaNameKey("main", info.name)
    read = Snapshot(0, {bytes(key): Read(None, 0)})
    await at.commit(change(read, SchemaCreated(info=info)))


async def part_gone(at: Cluster) -> str:
    version = await large_version(at)
    await at.delete(BatchPartKey(BATCH, 1))
    return str(CatalogUpdateKey(version))


async def part_rewritten(at: Cluster) -> str:
    version = await large_version(at)
    await at.edit(BatchPartKey(BATCH, 1), entries=())
    return str(CatalogUpdateKey(version))


async def nothing_says_how_far_it_is(at: Cluster) -> str:
    version = await large_version(at)
    await at.delete(LargeUpdateKey(version))
    return str(LargeUpdateKey(version))


async def another_version_before_its_keys(at: Cluster) -> str:
    version = await large_version(at, copied=2)
    await schema_made(at, 1_070)
    return str(LargeUpdateKey(version))


async def part_of_a_record_gone(at: Cluster) -> str:
    record = await staged_batch(at)
    await at.delete(BatchPartKey(CHILD, 1))
    return record


async def part_of_a_record_rewritten(at: Cluster) -> str:
    record = await staged_batch(at)
    await at.edit(BatchPartKey(CHILD, 1), members=())
    return record


async def unnamed_for_an_hour(at: Cluster, batch: str) -> None:
    """Parts that nothing names, and an hour of commits by one leader."""
    await stage(at, batch, ENTRIES, made())
    await schema_made(at, 1_071)
    at.clock.advance(COLLECTED_MS + AHEAD_MS)
    await schema_made(at, 1_072)


async def never_collected(at: Cluster) -> str:
    await unnamed_for_an_hour(at, BATCH)
    return str(BatchPartKey(BATCH, 0))


async def never_collected_of_one_that_is_over(at: Cluster) -> str:
    batch = f"{PROCEDURE}.7.1"
    await unnamed_for_an_hour(at, batch)
    return str(BatchPartKey(batch, 0))


BREAKAGES = (
    Breakage("log-parts", part_gone),
    Breakage("log-parts", part_rewritten),
    Breakage("log-parts", nothing_says_how_far_it_is),
    Breakage("log-parts", another_version_before_its_keys),
    Breakage("procedure-parts", part_of_a_record_gone),
    Breakage("procedure-parts", part_of_a_record_rewritten),
    Breakage("parts-named", never_collected),
    Breakage("parts-named", never_collected_of_one_that_is_over),
)
