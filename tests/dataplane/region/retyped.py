"""A column that changes its type twice, for tests of a region: the columns of each stage."""

from collections.abc import Collection, Mapping

import pyarrow as pa

from dataplane.region.engine.region import Region
from dataplane.region.format.columns import DELETE, PUT, ColumnDef, RegionOriginColumn, RegionSpec
from dataplane.region.format.schema import RegionSchema
from metasrv_base.errors import MetaError
from metasrv_base.schema.types import arrow_type
from tests.dataplane.region.rig import REGION_ID, header

COUNT = ColumnDef(id=2, type="int32", nullable=False)
WIDE = ColumnDef(
    id=3, type="int64", nullable=False, origin_columns=(RegionOriginColumn(id=2, type="int32"),)
)
TEXT = ColumnDef(
    id=4,
    type="string",
    nullable=False,
    origin_columns=(RegionOriginColumn(id=3, type="int64"), RegionOriginColumn(id=2, type="int32")),
)
STAGES = ((COUNT,), (COUNT, WIDE), (WIDE,), (WIDE, TEXT), (TEXT,))
RETYPED = RegionSpec(region_id=REGION_ID, columns=STAGES[0])

Numbers = dict[bytes, int]


def come_to(region: Region, stage: int) -> None:
    region.set_schema(RegionSchema(stage, 0, STAGES[stage]))


def retyped_batch(
    rows: Mapping[bytes, int | None], columns: Collection[ColumnDef]
) -> pa.RecordBatch:
    """Each row says its number in every one of the columns; None deletes the key."""
    ops = [DELETE if number is None else PUT for number in rows.values()]
    found = {"_key": pa.array(list(rows), pa.binary()), "_op": pa.array(ops, pa.uint8())}
    for column in columns:
        numbers = pa.array(list(rows.values()), pa.int32())
        found[column.name] = numbers.cast(arrow_type(column.type))
    return pa.RecordBatch.from_pydict(found)


def put(
    region: Region,
    statement: str,
    rows: Mapping[bytes, int | None],
    columns: Collection[ColumnDef],
) -> None:
    """Raises what the region answers, if it is an error."""
    rows_put = retyped_batch(rows, columns)
    (answer,) = region.writer.apply([(header(statement, region.opening.epoch, 0), rows_put)])
    if isinstance(answer, MetaError):
        raise answer


def numbers_of(rows: pa.Table | pa.RecordBatch) -> Numbers:
    """Returns the number of each row; it must be the same in every column."""
    said = [
        [int(value) for value in rows.column(name).to_pylist()]
        for name in rows.schema.names
        if name[0] == "c"
    ]
    assert said
    assert all(one == said[0] for one in said)
    return dict(zip(rows.column("_key").to_pylist(), said[0], strict=True))


def numbers(region: Region) -> Numbers:
    """Read whole, by points, and in each column alone."""
    found: Numbers = {}
    for part in region.reader.scan():
        found |= numbers_of(part)
    assert numbers_of(region.reader.get(sorted(found))) == found
    for column in region.spec.columns:
        assert numbers_of(region.reader.get(sorted(found), [column.id])) == found
    return found
