"""Two columns with one value in two types, while the type changes: what has no form in the other.

Pure. What fits into neither is decided by the graphs of metasrv_base/elements/graphs.py: who may
not write it is refused, who may write it for good does so at the next schema version.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.frontend.catalog.schema import Schema, StoredColumn
from dataplane.frontend.planning.cases import Cases
from dataplane.frontend.planning.row_input import RowInput
from metasrv_base.elements.graph import Act
from metasrv_base.errors import Conflict, Refused
from metasrv_base.schema.conversion import ConvertedArray

Columns = Mapping[int, pa.Array]


def check_mirrors(schema: Schema, cases: Cases, statement_rows: RowInput, new: Columns) -> None:
    """Raises Refused `constraint-violated` for a value that does not fit a type that comes, and
    Conflict `schema-version-stale` for one that only the old type, which goes, cannot hold."""
    for stored in schema.columns:
        if stored.mirror is None or not {Act.CHECK, Act.MIRROR} & stored.acts:
            continue
        sets = cases.sets(statement_rows, [stored.mirror.column])
        mirrored = pc.or_(
            cases.where(stored.does, sets, Act.CHECK), cases.where(stored.does, sets, Act.MIRROR)
        )
        comes = Act.CHECK in stored.acts
        wrong = in_its_type(stored, new).misfits if comes else _comes_back_otherwise(stored, new)
        row = pc.index(pc.and_(mirrored, wrong), True).as_py()
        if row < 0:
            continue
        if comes:
            source, column = stored.mirror.column, stored.column
            raise Refused(
                "constraint-violated",
                pointer=f"/rows/{statement_rows.place(row)}/{source.name}",
                name=f"{column.type.text}, to which the type of {column.name} is being changed,",
                reason="the value does not fit",
            )
        raise Conflict("schema-version-stale", table=schema.layout.name, seen=schema.version)


def in_its_type(stored: StoredColumn, new: Columns) -> ConvertedArray:
    """Values of new rows in the column that *stored* mirrors, in the type of *stored*."""
    assert stored.mirror is not None, "a column that mirrors another"
    return stored.mirror.conversion.of_array(new[stored.mirror.column.id])


def _comes_back_otherwise(stored: StoredColumn, new: Columns) -> pa.BooleanArray:
    """Values of the new type that a writer of the old one, who puts the row anew, would put in
    another form, as 1.50 for `1.5`, or that have none in it."""
    assert stored.mirror is not None, "a column that mirrors another"
    conversion, values = stored.mirror.conversion, new[stored.mirror.column.id]
    back = conversion.reverse.of_array(conversion.of_array(values).values).values
    same = pc.fill_null(pc.equal(back, values), False)
    if pa.types.is_floating(values.type):
        same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(back), pc.is_nan(values)), False))
    return pc.and_(pc.is_valid(values), pc.invert(same))
