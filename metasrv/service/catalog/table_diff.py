"""The difference of two versions of one table, as operations that lead from one to the other.

Pure. Only what users see counts: public columns and indexes, and constraints that are enforced.
Columns go by their ids: one that was dropped and added again is another one. A column in the place
of another one, of another type, has the ids of those before it in `origin_columns`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keys.model.tables import Column, Constraint, ConstraintKind, Index, TableInfo
from metasrv.service.bodies.column_pairs import ColumnPair, column_pairs
from metasrv.service.bodies.shapes import shown_check
from metasrv_base.elements.states import ElementState
from metasrv_base.wire.api.changes import (
    AddColumn,
    AddConstraint,
    AlterOperation,
    AlterType,
    DropColumn,
    DropConstraint,
    RenameColumn,
    SetCopies,
    SetDefault,
    SetNullable,
    SetOptions,
    ValidateConstraint,
)
from metasrv_base.wire.api.tables import DEFAULT_NUMBER, ColumnSpec, IndexSpec
from metasrv_base.wire.api.versions import CreatedIndex, DroppedIndex, IndexOperation
from procedures.quorum import own_numbers


@dataclass(frozen=True, slots=True)
class DifferenceOfTables:
    alter: tuple[AlterOperation, ...]
    """Operations in an order in which an alter takes them."""
    indexes: tuple[IndexOperation, ...]


def difference(before: TableInfo, after: TableInfo) -> DifferenceOfTables:
    """The operations from *before* to *after*: the name, the id and the regions aside."""
    pairs = column_pairs(before.public_columns, after.public_columns)
    kept = {column.id for _, column in pairs}
    left = {column.id for column, _ in pairs}
    alter = (
        *_dropped_constraints(before, after),
        *(
            DropColumn(op="drop_column", name=column.name)
            for column in before.public_columns
            if column.id not in left
        ),
        *_renamed(pairs),
        *(
            AlterType(op="alter_type", name=new.name, type=new.type)
            for old, new in pairs
            if old.type != new.type
        ),
        *_added(after.public_columns, kept),
        *_edited(pairs),
        *_added_constraints(before, after),
        *_options(before.options, after.options),
        *_copies(before, after),
    )
    return DifferenceOfTables(alter, tuple(_indexes(before, after)))


def _renamed(pairs: Sequence[ColumnPair]) -> Iterator[AlterOperation]:
    """Renames in an order in which no name is taken; a name that is exchanged goes by another."""
    names = {old.name: new.name for old, new in pairs if old.name != new.name}
    ids = {old.name: old.id for old, _ in pairs}
    while names:
        free = next((name for name, target in names.items() if target not in names), None)
        if free is not None:
            yield RenameColumn(op="rename_column", name=free, new_name=names.pop(free))
            continue
        name, target = names.popitem()
        between = f"{name[:100]}_{ids[name]}"
        yield RenameColumn(op="rename_column", name=name, new_name=between)
        names[between] = target


def _added(columns: Sequence[Column], kept: set[int]) -> Iterator[AlterOperation]:
    """Each behind the column before it, which is there by then."""
    for position, column in enumerate(columns):
        if column.id in kept:
            continue
        is_last = not any(each.id in kept for each in columns[position:])
        yield AddColumn(
            op="add_column",
            column=ColumnSpec(
                name=column.name,
                type=column.type,
                nullable=column.nullable,
                default=column.origin_default,
            ),
            after=None if is_last or position == 0 else columns[position - 1].name,
        )
        if column.default != column.origin_default:
            yield SetDefault(op="set_default", name=column.name, default=column.default)


def _edited(pairs: Sequence[ColumnPair]) -> Iterator[AlterOperation]:
    for old, new in pairs:
        if old.default != new.default:
            yield SetDefault(op="set_default", name=new.name, default=new.default)
        if old.nullable != new.nullable:
            yield SetNullable(op="set_nullable", name=new.name, nullable=new.nullable)


def _enforced(info: TableInfo) -> dict[int, Constraint]:
    """Constraints that users have; not those on their way in or out."""
    return {
        each.id: each
        for each in info.constraints
        if each.state is ElementState.PUBLIC
        or (each.state is ElementState.WRITE_ONLY and not each.holds)
    }


def _dropped_constraints(before: TableInfo, after: TableInfo) -> Iterator[AlterOperation]:
    kept = _enforced(after)
    for id, constraint in _enforced(before).items():
        if id not in kept and not _became_column(constraint, after):
            yield DropConstraint(op="drop_constraint", name=constraint.name)


def _became_column(constraint: Constraint, after: TableInfo) -> bool:
    """Whether it is a NOT NULL that holds by now: the column says it, and `set_nullable` tells."""
    columns = [column for column in after.columns if column.id in constraint.columns]
    is_not_null = constraint.kind is ConstraintKind.NOT_NULL
    return is_not_null and any(not column.nullable for column in columns)


def _added_constraints(before: TableInfo, after: TableInfo) -> Iterator[AlterOperation]:
    old, names = _enforced(before), {column.id: column.name for column in after.columns}
    for id, constraint in _enforced(after).items():
        if id in old:
            if constraint.holds and not old[id].holds:
                yield ValidateConstraint(op="validate_constraint", name=constraint.name)
        elif constraint.kind is ConstraintKind.NOT_NULL:
            column = names[constraint.columns[0]]
            yield AddConstraint(
                op="add_constraint",
                name=constraint.name,
                not_null=column,
                not_valid=not constraint.holds,
            )
        else:
            yield AddConstraint(
                op="add_constraint",
                name=constraint.name,
                check=shown_check(constraint, names),
                not_valid=not constraint.holds,
            )


def _options(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[AlterOperation]:
    changed = {
        name: after.get(name)
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    }
    if changed:
        yield SetOptions(op="set_options", options=changed)


def _copies(before: TableInfo, after: TableInfo) -> Iterator[AlterOperation]:
    """The numbers of copies that the table itself names; changes of its placement are none of the
    table."""
    (replicas, minimum), old = own_numbers(after), own_numbers(before)
    if (replicas, minimum) != old:
        reason = None
        fields: dict[str, Any] = {}
        fields |= {} if replicas == old[0] else {"replicas": replicas or DEFAULT_NUMBER}
        fields |= {} if minimum == old[1] else {"min_in_sync": minimum or DEFAULT_NUMBER}
        yield SetCopies(op="set_copies", **fields, reason=reason)


def _indexes(before: TableInfo, after: TableInfo) -> Iterator[IndexOperation]:
    old, new = _public(before), _public(after)
    names = {column.id: column.name for column in after.columns}
    for id, index in old.items():
        if id not in new:
            yield DroppedIndex(op="drop_index", name=index.name)
    for id, index in new.items():
        if id not in old:
            columns = tuple(names[column] for column in index.columns)
            spec = IndexSpec(name=index.name, columns=columns, unique=index.unique)
            yield CreatedIndex(op="create_index", index=spec)


def _public(info: TableInfo) -> dict[int, Index]:
    return {each.id: each for each in info.indexes if each.state is ElementState.PUBLIC}
