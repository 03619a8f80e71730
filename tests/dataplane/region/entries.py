"""Helpers for index entries: batches of rows and entries, and contents by family."""

from collections.abc import Mapping

import pyarrow as pa

from dataplane.region.disk.memory_disk import MemoryDisk
from dataplane.region.engine.group import Applied
from dataplane.region.engine.reading import ScanBounds
from dataplane.region.engine.region import Region
from dataplane.region.format.columns import DELETE, PUT
from dataplane.region.format.families import ROWS
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.schema import RegionSchema
from dataplane.region.place import RegionLimits
from metasrv_base.errors import MetaError
from tests.dataplane.region.rig import SPEC, Row, header, place

INDEX = 3
OTHER = 4
DEAD = 5
SCHEMA = RegionSchema(2, 1, SPEC.columns, frozenset({INDEX, OTHER}), frozenset({DEAD}))

Place = tuple[int, bytes]
"""A family and a key in it."""
Value = Row | bytes | None
"""A row; for an entry, the key of its row; None: a delete."""
Entries = dict[bytes, bytes]

FIRST: dict[Place, Value] = {
    (ROWS, b"a"): (1, "x"),
    (INDEX, b"x-a"): b"a",
    (OTHER, b"1-a"): b"a",
    (ROWS, b"b"): (2, "w"),
    (INDEX, b"w-b"): b"b",
    (OTHER, b"2-b"): b"b",
}


def new_region(disk: MemoryDisk | None = None, limits: RegionLimits | None = None) -> Region:
    region = Region.create(place(disk, limits=limits), SPEC, epoch=1)
    region.set_schema(SCHEMA)
    return region


def mixed(
    values: Mapping[Place, Value], expect: Mapping[Place, int] | None = None
) -> pa.RecordBatch:
    """In the order given."""
    rows = [value if isinstance(value, tuple) else (None, None) for value in values.values()]
    columns = {
        "_key": pa.array([key for _, key in values], pa.binary()),
        "_op": pa.array([DELETE if v is None else PUT for v in values.values()], pa.uint8()),
        "_family": pa.array([family or None for family, _ in values], pa.int32()),
        "_row": pa.array(
            [value if isinstance(value, bytes) else None for value in values.values()], pa.binary()
        ),
        "c1": pa.array([row[0] for row in rows], pa.int64()),
        "c2": pa.array([row[1] for row in rows], pa.string()),
    }
    if expect is not None:
        columns["_expect"] = pa.array([expect.get(place) for place in values], pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def write_mixed(
    region: Region,
    statement: str,
    values: Mapping[Place, Value],
    expect: Mapping[Place, int] | None = None,
) -> Applied:
    """Raises what the region answers, if it is an error."""
    head = header(statement, region.opening.epoch, 2)
    (answer,) = region.writer.apply([(head, mixed(values, expect))])
    if isinstance(answer, MetaError):
        raise answer
    return answer


def entries_of(region: Region, index: int = INDEX) -> Entries:
    found: Entries = {}
    for part in region.reader.scan_entries(index):
        keys = part.column("_entry").to_pylist()
        assert keys == sorted(set(keys)), "entries come once each and in order"
        found.update(zip(keys, part.column("_key").to_pylist(), strict=True))
    return found


def by_index(
    region: Region, keys: KeyRange | None = None, limit: int | None = None
) -> list[tuple[bytes, bytes, Row]]:
    """Entry, row's key, and row, in the order of the entries."""
    found = []
    for part in region.reader.scan_index(INDEX, keys, bounds=ScanBounds(limit)):
        table = part.to_pydict()
        rows = zip(table["c1"], table["c2"], strict=True)
        found += list(zip(table["_entry"], table["_key"], rows, strict=True))
    return found


def version_in(region: Region, place: Place) -> int:
    family, key = place
    if family == ROWS:
        versions = region.reader.get([key]).column("_version").to_pylist()
    else:
        found = region.reader.scan_entries(family, KeyRange(key, key + b"\x00"))
        versions = [version for part in found for version in part.column("_version").to_pylist()]
    return versions[0] if versions else 0


def refusal(region: Region, rows: pa.RecordBatch, schema_version: int = 2) -> MetaError:
    """Returns the error of a batch that must be refused."""
    (answer,) = region.writer.apply([(header("wrong", region.opening.epoch, schema_version), rows)])
    assert isinstance(answer, MetaError)
    return answer
