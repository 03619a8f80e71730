"""A leader whose log has changes of schema and marks between its rows, and what each position is.

An item is what stands at one position: rows, or a change.
"""

from dataclasses import dataclass, replace

import pyarrow as pa

from dataplane.region.disk.disk import Disk
from dataplane.region.engine.region import Region
from dataplane.region.engine.region_changes import RegionChange
from dataplane.region.following.leading import LedOpening
from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.families import FAMILY, ROW
from dataplane.region.format.schema import RegionSchema
from dataplane.region.manifests.manifest import Manifest, read_current_manifest
from metasrv_base.errors import MetaError
from tests.dataplane.region.rig import REGION_ID, SPEC, header

INDEX = 7
C3 = ColumnDef(id=3, type="int64", nullable=True)
WIDER = RegionSchema(2, 1, (*SPEC.columns, C3), frozenset({INDEX}))
NARROW = RegionSchema(3, 2, SPEC.columns, frozenset(), frozenset({INDEX}))
OPEN = RegionChange(WIDER, "reorg")
CLOSE = RegionChange(NARROW, closes=("reorg",))

Values = dict[bytes, tuple[int, int | None]]


@dataclass(frozen=True)
class State:
    """All that a change may touch."""

    schema: RegionSchema
    floor_version: int
    marks: tuple[tuple[str, int], ...]
    sequence: int


def state_of(manifest: Manifest) -> State:
    marks = tuple((mark.name, mark.version) for mark in manifest.marks)
    return State(manifest.table_schema, manifest.floor_version, marks, manifest.change_sequence)


def state_on(disk: Disk, root: str) -> State:
    manifest = read_current_manifest(disk, root, REGION_ID)
    assert manifest is not None
    return state_of(manifest)


def write_at(
    region: Region, number: int, version: int, c3: int | None = None, index: int | None = None
) -> None:
    """One row, by a sender of that schema version; with *c3*, and an entry of *index*."""
    key = f"k{number}".encode()
    columns = {
        "_key": pa.array([key], pa.binary()),
        "_op": pa.array([0], pa.uint8()),
        "c1": pa.array([number], pa.int64()),
        "c2": pa.array(["x" * 40], pa.string()),
    }
    if c3 is not None:
        columns["c3"] = pa.array([c3], pa.int64())
    rows = pa.RecordBatch.from_pydict(columns)
    if index is not None:
        rows = with_entry(rows, key, index)
    head = header(f"s-{region.opening.epoch}-{number}", region.opening.epoch, version)
    (answer,) = region.writer.apply([(head, rows)])
    if isinstance(answer, MetaError):
        raise answer


def with_entry(rows: pa.RecordBatch, key: bytes, index: int) -> pa.RecordBatch:
    names = rows.schema.names
    arrays = [
        pa.concat_arrays([column, _entry_value(name, key, column.type)])
        for name, column in zip(names, rows.columns, strict=True)
    ]
    families = pa.array([0, index], pa.int32())
    row = pa.array([None, key], pa.binary())
    return pa.RecordBatch.from_arrays([*arrays, families, row], [*names, FAMILY, ROW])


def _entry_value(name: str, key: bytes, type_: pa.DataType) -> pa.Array:
    if name == "_key":
        return pa.array([b"e-" + key], type_)
    return pa.array([0 if name == "_op" else None], type_)


def change(region: Region, wanted: RegionChange) -> int:
    """Both halves, as a leader does whose copies have the record."""
    ordered = region.changes.order(wanted)
    if ordered.record is not None:
        region.changes.settle(ordered.record)
    return ordered.version


def work(region: Region, item: int) -> None:
    """Puts item 1 to 9 at the position of that number."""
    match item:
        case 1 | 2:
            write_at(region, item, 1)
        case 3:
            change(region, OPEN)
        case 4:
            write_at(region, item, 1, index=INDEX)
        case 5 | 6:
            write_at(region, item, 2, c3=item, index=INDEX)
        case 7:
            change(region, CLOSE)
        case _:
            write_at(region, item, 2)


ITEMS = 9


def values(region: Region) -> Values:
    """The rows with their third column, if they have it."""
    found: Values = {}
    for part in region.reader.scan():
        names = part.schema.names
        third = part.column("c3").to_pylist() if "c3" in names else [None] * part.num_rows
        pairs = zip(part.column("c1").to_pylist(), third, strict=True)
        found.update(zip(part.column("_key").to_pylist(), pairs, strict=True))
    return found


@dataclass(frozen=True)
class Moment:
    state: State
    rows: Values
    version: int


def moment(region: Region) -> Moment:
    return Moment(state_of(region.manifest), values(region), region.stats().version)


def moments(region: Region) -> list[Moment]:
    """Works through all items; what the region is before the first and after each."""
    found = [moment(region)]
    for item in range(1, ITEMS + 1):
        work(region, item)
        assert region.log_history.end == item
        found.append(moment(region))
    return found


def counted(opening: LedOpening) -> Moment:
    """The promoted region once its log counts."""
    opening.count()
    return moment(opening.region)


def without_sequence(state: State) -> State:
    return replace(state, sequence=0)
