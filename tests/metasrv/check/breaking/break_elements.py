"""Raw puts that break the rules about the columns, indexes and constraints of a table."""

from typing import Any

from keys.model.tables import Constraint, ConstraintKind, Index, TableInfoKey
from metasrv_base.elements.states import ElementState
from tests.metasrv.check.breaking.breaking import Breakage
from tests.metasrv.check.cluster import FLIGHTS, Cluster

INFO = TableInfoKey(FLIGHTS)


async def column_twice(at: Cluster) -> str:
    columns = (await at.read(INFO)).columns
    return await at.edit(INFO, columns=(columns[0], columns[0]))


async def column_id_not_taken(at: Cluster) -> str:
    return await at.edit(INFO, next_column_id=2)


async def key_of_no_column(at: Cluster) -> str:
    return await at.edit(INFO, primary_key=(1, 9))


async def key_column_on_its_way_out(at: Cluster) -> str:
    first, *rest = (await at.read(INFO)).columns
    leaving = first.model_copy(update={"state": ElementState.WRITE_ONLY})
    return await at.edit(INFO, columns=(leaving, *rest))


async def floor_above_version(at: Cluster) -> str:
    return await at.edit(INFO, schema_floor=2)


def an_index(**other: Any) -> Index:
    """On the first column."""
    return Index(id=1, name="by_id", columns=(1,), unique=False).model_copy(update=other)


async def index_id_not_taken(at: Cluster) -> str:
    return await at.edit(INFO, indexes=(an_index(),), next_index_id=1)


async def index_name_twice(at: Cluster) -> str:
    twice = (an_index(), an_index(id=2, name="BY_ID"))
    return await at.edit(INFO, indexes=twice, next_index_id=3)


async def index_of_no_column(at: Cluster) -> str:
    return await at.edit(INFO, indexes=(an_index(columns=(99,)),), next_index_id=2)


async def stored_absent(at: Cluster) -> str:
    absent = an_index(state=ElementState.ABSENT)
    return await at.edit(INFO, indexes=(absent,), next_index_id=2)


async def constraint_delete_only(at: Cluster) -> str:
    """A constraint keeps nothing, so it has no such state."""
    found = Constraint(
        id=1,
        name="has_id",
        kind=ConstraintKind.NOT_NULL,
        columns=(1,),
        state=ElementState.DELETE_ONLY,
    )
    return await at.edit(INFO, constraints=(found,), next_constraint_id=2)


BREAKAGES = (
    Breakage("table-elements", column_twice),
    Breakage("table-elements", column_id_not_taken),
    Breakage("table-elements", key_of_no_column),
    Breakage("table-elements", key_column_on_its_way_out),
    Breakage("table-elements", floor_above_version),
    Breakage("table-online", index_id_not_taken),
    Breakage("table-online", index_name_twice),
    Breakage("table-online", index_of_no_column),
    Breakage("table-online", stored_absent),
    Breakage("table-online", constraint_delete_only),
)
