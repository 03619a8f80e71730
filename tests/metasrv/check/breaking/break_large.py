"""A version whose entries are in parts, written as a leader would, and what breaks its rule."""

from keys.commit.batch import PendingTxn, seal
from keys.commit.change import change
from keys.commit.packing import pack
from keys.commit.staging import ENTRIES, PartsReference, parts_of
from keys.commit.txn import Read, Snapshot, Txn
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.log import CatalogUpdateKey, SchemaCreated
from keys.model.staging.parts import BatchPartKey, LargeUpdate, LargeUpdateKey
from keys.store.kv import Put, Request
from keys.value import encode
from tests.metasrv.check.breaking.breaking import Breakage
from tests.metasrv.check.cluster import DEADLINE_MS, Cluster

BATCH = "019aa5d3-1c03-7abc-8def-0123456789ab.7.1"
SCHEMAS = tuple(
    SchemaInfo(schema_id=1_060 + number, catalog="main", name=f"s{number}", created_at_ms=1)
    for number in range(3)
)


async def large_version(at: Cluster, *, copied: int = len(SCHEMAS)) -> int:
    """A version that makes three schemas. *copied*: of their keys, those that are written."""
    entries = tuple(SchemaCreated(info=info) for info in SCHEMAS)
    reference = PartsReference(BATCH)
    for key, raw in parts_of(BATCH, ENTRIES, entries, part_bytes=100):
        await at.put_raw(bytes(key), raw)
        reference.add(raw)
    assert at.line is not None
    staged = reference.made()
    member = PendingTxn(Txn(entries=entries), None, staged=staged, copies=len(SCHEMAS))
    packed = pack(at.line, [member], at.clock.wall_ms(), members_max=1)
    batch = seal(at.line, packed.after, packed.shares)
    answer = await at.kv.txn(batch.request, deadline_ms=DEADLINE_MS)
    assert answer.succeeded
    at.line = batch.head_after(answer.revision)
    version = at.line.version
    puts = [Put(bytes(SchemaNameKey("main", info.name)), encode(info)) for info in SCHEMAS]
    large = LargeUpdate(version=version, staged=staged, keys=len(puts), copied=copied)
    puts = [*puts[:copied], Put(bytes(LargeUpdateKey(version)), encode(large))]
    assert (await at.kv.txn(Request(writes=tuple(puts)), deadline_ms=DEADLINE_MS)).succeeded
    return version


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
    info = SCHEMAS[0].model_copy(update={"name": "later", "schema_id": 1_070})
    key = SchemaNameKey("main", info.name)
    read = Snapshot(0, {bytes(key): Read(None, 0)})
    await at.commit(change(read, SchemaCreated(info=info)))
    return str(LargeUpdateKey(version))


BREAKAGES = (
    Breakage("log-parts", part_gone),
    Breakage("log-parts", part_rewritten),
    Breakage("log-parts", nothing_says_how_far_it_is),
    Breakage("log-parts", another_version_before_its_keys),
)
