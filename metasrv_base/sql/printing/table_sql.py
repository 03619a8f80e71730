"""A table as the SQL that makes it: its own statement, then its indexes and constraints."""

from collections.abc import Iterator

from metasrv_base.elements.states import ElementState
from metasrv_base.sql.commands import QualifiedTable
from metasrv_base.sql.printing import print_alter, print_table
from metasrv_base.wire.api.changes import AddConstraint, AlterRequest
from metasrv_base.wire.api.tables import (
    ColumnSpec,
    ConstraintBody,
    HashPartition,
    IndexSpec,
    TableDefinition,
    TableShape,
    TableSpec,
)


def statements_of(table: TableDefinition) -> tuple[str, ...]:
    """The statements, without semicolons, that make an equal table without rows. Elements that are
    not public are left out: they are on their way, and who reads the statements sees what users
    see; an index or a constraint that was added with NOT VALID and still is counts as public."""
    return tuple(_statements(table))


def _statements(table: TableDefinition) -> Iterator[str]:
    name = QualifiedTable(table.name, table.schema_name, table.catalog)
    yield print_table.create_table(name, _spec(table))
    for index in table.indexes:
        if index.state is ElementState.PUBLIC:
            spec = IndexSpec(name=index.name, columns=index.columns, unique=index.unique)
            yield print_table.create_index(name, spec)
    for constraint in table.constraints:
        if constraint.state is ElementState.PUBLIC or not constraint.holds:
            request = AlterRequest(operations=(_added(constraint),))
            yield print_alter.alter_table(name, request)


def _added(constraint: ConstraintBody) -> AddConstraint:
    is_check = constraint.kind == "check"
    return AddConstraint(
        op="add_constraint",
        name=constraint.name,
        check=constraint.expression if is_check else None,
        not_null=None if is_check else constraint.columns[0],
        not_valid=not constraint.holds,
    )


def _spec(table: TableDefinition) -> TableSpec:
    shape = {field: getattr(table, field) for field in TableShape.model_fields}
    shape |= dict.fromkeys(table.inherited)
    columns = (
        ColumnSpec(
            name=column.name, type=column.type, nullable=column.nullable, default=column.default
        )
        for column in table.columns
        if column.state is ElementState.PUBLIC
    )
    if table.placement is None and table.partition == _one_region(table):
        shape["partition"] = None
    return TableSpec(**shape, columns=tuple(columns))


def _one_region(table: TableDefinition) -> HashPartition:
    """The partition of a table that says nothing of it, in the default placement."""
    return HashPartition(by="hash", columns=table.primary_key, count=1)
