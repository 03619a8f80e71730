"""Helpers for a region: a small table, batches in one line, and contents as a dict."""

from collections.abc import Mapping

import pyarrow as pa

from dataplane.region.disk.disk import Disk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.group import Applied
from dataplane.region.engine.region import Region
from dataplane.region.engines.engine import ServedRegion
from dataplane.region.engines.registry import ENGINES
from dataplane.region.format.columns import DELETE, PUT, ColumnDef, RegionSpec
from dataplane.region.place import OpenOrder, RegionLimits, RegionPlace
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.batches import BatchHeader
from tests.fakes.clock import FakeClock

REGION_ID = 1024 << 32
A = "/disk/a/region"
B = "/disk/b/region"
C = "/disk/c/region"
SPEC = RegionSpec(
    region_id=REGION_ID,
    columns=(
        ColumnDef(id=1, type="int64", nullable=False),
        ColumnDef(id=2, type="string", nullable=True),
    ),
)

Row = tuple[int, str | None]
Contents = dict[bytes, Row]


def place(
    disk: Disk | None = None,
    root: str = A,
    clock: FakeClock | None = None,
    limits: RegionLimits | None = None,
) -> RegionPlace:
    return RegionPlace(
        disk or MemoryDisk(MemoryStore()),
        root,
        clock or FakeClock(),
        limits or RegionLimits(),
    )


def created(engine: str, region_place: RegionPlace, **options: int) -> Region:
    """A new region of that engine, at epoch 1."""
    region = ENGINES[engine].create(region_place, SPEC, 1, (), options)
    assert isinstance(region, Region), "the engines of this program share their parts"
    return region


def order(epoch: int, *borrows: str) -> OpenOrder:
    return OpenOrder(REGION_ID, epoch, borrows)


def header(
    statement: str, epoch: int = 1, schema_version: int = 1, sent_ms: int | None = None
) -> BatchHeader:
    """Returns the header of a sender that maintains indexes."""
    return BatchHeader(
        table_id=1024,
        schema_version=schema_version,
        epoch=epoch,
        statement_id=statement,
        sent_ms=sent_ms,
        maintains_indexes=True,
    )


def batch(
    rows: Mapping[bytes, Row | None], expect: Mapping[bytes, int] | None = None
) -> pa.RecordBatch:
    """None deletes the key."""
    ops = [DELETE if row is None else PUT for row in rows.values()]
    columns = {
        "_key": pa.array(list(rows), pa.binary()),
        "_op": pa.array(ops, pa.uint8()),
        "c1": pa.array([row and row[0] for row in rows.values()], pa.int64()),
        "c2": pa.array([row and row[1] for row in rows.values()], pa.string()),
    }
    if expect is not None:
        columns["_expect"] = pa.array([expect.get(key) for key in rows], pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def write(
    region: ServedRegion,
    statement: str,
    rows: Mapping[bytes, Row | None],
    expect: Mapping[bytes, int] | None = None,
    sent_ms: int | None = None,
) -> Applied:
    """Raises what the region answers, if it is an error."""
    head = header(statement, region.opening.epoch, sent_ms=sent_ms)
    (answer,) = region.writer.apply([(head, batch(rows, expect))])
    if isinstance(answer, MetaError):
        raise answer
    return answer


def contents(region: ServedRegion) -> Contents:
    found: Contents = {}
    last = b""
    for part in region.reader.scan():
        keys = part.column("_key").to_pylist()
        assert keys == sorted(set(keys)), "keys come once each and in order"
        assert last < keys[0], "and so do batches"
        last = keys[-1]
        values = zip(part.column("c1").to_pylist(), part.column("c2").to_pylist(), strict=True)
        found.update(zip(keys, values, strict=True))
    return found


def by_key(region: ServedRegion, *keys: bytes) -> Contents:
    rows = region.reader.get(keys).to_pydict()
    return {key: (c1, c2) for key, c1, c2 in zip(rows["_key"], rows["c1"], rows["c2"], strict=True)}


def version_of(region: ServedRegion, key: bytes) -> int:
    versions: list[int] = region.reader.get([key]).column("_version").to_pylist()
    return versions[0] if versions else 0
