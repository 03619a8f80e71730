"""The difference of a table and its declaration, as operations that can be done in order. Pure.

Drops and renames come first, then changes of type, new columns, new rules: each a phase, and a
request of its own, so that no operation meets another that is still under way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from metasrv.service.declared.canonical import CANNOT, converted_default, default_of, renamed
from metasrv.service.declared.in_place import is_over, refuse_types, refuse_what_stays
from metasrv.service.declared.matching import Matched, matched
from metasrv.service.declared.operations import DeclaredName, DeclaredPlan
from metasrv.service.declared.table_elements import (
    UNENFORCED,
    added_constraints,
    create_indexes,
    drop_indexes,
    kept_constraints,
)
from metasrv_base.schema.conversion import conversion_of
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.api import changes
from metasrv_base.wire.api.changes import AlterOperation
from metasrv_base.wire.api.tables import DEFAULT_NUMBER, ColumnSpec
from metasrv_base.wire.language.declared import DeclaredColumn, DeclaredTable
from procedures.quorum import said_minimum

AWAY, TYPES, NEW, RULES, COPIES = 1, 2, 3, 4, 5
"""Phases of the alters of one table."""
DECLARED = "it is declared so"
"""Reason of a lower minimum of copies in sync."""


@dataclass(frozen=True, slots=True)
class TablePair:
    """A table as it is and as it is declared."""

    name: DeclaredName
    current: DeclaredTable
    desired: DeclaredTable
    pointer: str
    """The place of the declaration."""
    is_new: bool = False
    """Whether it is made; *current* is then the declaration without indexes and constraints."""
    partitions: int = 1
    """Regions of a table in its placement that says nothing of them."""


def set_options(pair: TablePair, plan: DeclaredPlan) -> None:
    before, after = pair.current.options, pair.desired.options
    changed = {
        name: after.get(name)
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    }
    if changed:
        plan.alter(pair.name, 0, changes.SetOptions(op="set_options", options=changed))


def table_operations(pair: TablePair, plan: DeclaredPlan) -> None:
    """Adds to *plan* the operations but for the options, and whatever cannot be done."""
    current, desired, name = pair.current, pair.desired, pair.name
    refused = len(plan.refusals)
    columns = matched([column.name for column in current.columns], desired.columns)
    for position, reason in columns.faults:
        plan.refuse(f"{pair.pointer}/columns/{position}/renamed_from", reason)
    before = renamed(_without_dropped(current, columns), columns.renames)
    refuse_what_stays(before, desired, pair.partitions, pair.pointer, plan)
    refuse_types(before, desired, pair.pointer, plan)
    _refuse_columns(before, desired, pair.pointer, plan)
    if len(plan.refusals) > refused:
        return
    indexes = renamed(current, columns.renames)
    drop_indexes(name, indexes, desired, plan)
    for operation, loss in _away(pair, columns, before):
        plan.alter(name, AWAY, operation, loss)
    for operation, loss in _types(before, desired):
        plan.alter(name, TYPES, operation, loss)
    for operation in _new(before, desired):
        plan.alter(name, NEW, operation)
    for operation in added_constraints(before, desired):
        plan.alter(name, RULES, operation)
    create_indexes(name, indexes, desired, plan)
    for operation in _copies(before, desired):
        plan.alter(name, COPIES, operation)


def _copies(before: DeclaredTable, desired: DeclaredTable) -> Iterator[AlterOperation]:
    fields: dict[str, Any] = {}
    if before.replicas != desired.replicas:
        fields["replicas"] = desired.replicas or DEFAULT_NUMBER
    if _minimum(before) != _minimum(desired):
        fields["min_in_sync"] = desired.min_in_sync or DEFAULT_NUMBER
    if fields:
        yield changes.SetCopies(op="set_copies", **fields, reason=DECLARED)


def _minimum(table: DeclaredTable) -> int | None:
    number = table.min_in_sync
    return number if table.replicas is None else said_minimum(table.replicas, number)


def _refuse_columns(
    before: DeclaredTable, desired: DeclaredTable, pointer: str, plan: DeclaredPlan
) -> None:
    there = {column.name for column in before.columns}
    for position, column in enumerate(desired.columns):
        if column.name not in there and not column.nullable and column.default is None:
            reason = "a new column that is not nullable needs a default for the rows that are there"
            plan.refuse(f"{pointer}/columns/{position}", reason)


def _without_dropped(table: DeclaredTable, columns: Matched) -> DeclaredTable:
    """The table without the columns that are dropped, and without the constraints over them."""
    kept = columns.taken
    dropped = [column.name for column in table.columns if column.name not in kept]
    constraints = (
        each
        for each in table.constraints
        if not any(is_over(table, each, column) for column in dropped)
    )
    return table.model_copy(
        update={
            "columns": tuple(column for column in table.columns if column.name in kept),
            "constraints": tuple(constraints),
        }
    )


def _away(
    pair: TablePair, columns: Matched, before: DeclaredTable
) -> Iterator[tuple[AlterOperation, str | None]]:
    """Yields drops and renames, each with what is lost."""
    kept = kept_constraints(before, pair.desired)
    for constraint in pair.current.constraints:
        if constraint.name not in kept:
            yield changes.DropConstraint(op="drop_constraint", name=constraint.name), UNENFORCED
    for column in pair.current.columns:
        if column.name not in columns.taken:
            yield changes.DropColumn(op="drop_column", name=column.name), "its values are deleted"
    for now, new in columns.renames.items():
        yield changes.RenameColumn(op="rename_column", name=now, new_name=new), None
    for old, column in _pairs(before, pair.desired):
        if _is_other_type(old, column) and _converted(old, column) is CANNOT:
            yield changes.SetDefault(op="set_default", name=column.name, default=None), None


def _pairs(
    before: DeclaredTable, desired: DeclaredTable
) -> Iterator[tuple[DeclaredColumn, DeclaredColumn]]:
    there = {column.name: column for column in before.columns}
    for column in desired.columns:
        if column.name in there:
            yield there[column.name], column


def _is_other_type(old: ColumnSpec, new: ColumnSpec) -> bool:
    return parse_type(old.type) != parse_type(new.type)


def _converted(old: ColumnSpec, new: ColumnSpec) -> object:
    return converted_default(old, new.type)


def _types(
    before: DeclaredTable, desired: DeclaredTable
) -> Iterator[tuple[AlterOperation, str | None]]:
    for old, new in _pairs(before, desired):
        if _is_other_type(old, new):
            source, target = parse_type(old.type), parse_type(new.type)
            narrows = not conversion_of(source, target).is_lossless
            loss = f"values that no {target.text} can hold are refused" if narrows else None
            yield changes.AlterType(op="alter_type", name=new.name, type=target.text), loss


def _new(before: DeclaredTable, desired: DeclaredTable) -> Iterator[AlterOperation]:
    yield from _added(before, desired)
    for old, new in _pairs(before, desired):
        default, now = default_of(new), _converted(old, new)
        if default != (None if now is CANNOT else now):
            yield changes.SetDefault(op="set_default", name=new.name, default=default)
        if old.nullable != new.nullable:
            yield changes.SetNullable(op="set_nullable", name=new.name, nullable=new.nullable)


def _added(before: DeclaredTable, desired: DeclaredTable) -> Iterator[AlterOperation]:
    """Yields each new column behind the column before it, which is there by then."""
    there = {column.name for column in before.columns}
    for position, column in enumerate(desired.columns):
        if column.name in there:
            continue
        is_last = not any(each.name in there for each in desired.columns[position:])
        spec = ColumnSpec(
            name=column.name,
            type=parse_type(column.type).text,
            nullable=column.nullable,
            default=default_of(column),
        )
        after = None if is_last or position == 0 else desired.columns[position - 1].name
        yield changes.AddColumn(op="add_column", column=spec, after=after)
