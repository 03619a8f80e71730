"""Events of the elements of a table, between two of its definitions. Pure.

Columns count while they are public. One that came in the place of another one, of another type, is
one event. Indexes and constraints are told of from state to state.
"""

from collections.abc import Iterator

from keys.model.tables import Column, TableInfo
from keys.model.transitions import ElementChange
from metasrv.service.bodies.column_pairs import column_pairs
from metasrv.service.bodies.shapes import column_body, constraint_body, index_body
from metasrv.service.events.facts import TableFacts
from metasrv_base.elements.states import ElementState
from metasrv_base.wire.events.element_events import (
    ColumnAddedEvent,
    ColumnAlteredEvent,
    ColumnDroppedEvent,
    ColumnRenamedEvent,
    ColumnTypeChangedEvent,
    ConstraintCreatedEvent,
    ConstraintDroppedEvent,
    ConstraintDroppingEvent,
    ConstraintPublicEvent,
    IndexCreatedEvent,
    IndexDroppedEvent,
    IndexDroppingEvent,
    IndexPublicEvent,
)
from metasrv_base.wire.events.events import CatalogEvent
from procedures.elements.shifts import shifts

ABSENT, PUBLIC = ElementState.ABSENT, ElementState.PUBLIC


def element_events(
    facts: TableFacts, before: TableInfo, after: TableInfo
) -> Iterator[CatalogEvent]:
    """Yields columns that went, that were renamed or altered, and that came, these by position;
    then indexes and constraints."""
    yield from _columns(facts, before, after)
    for change in shifts(before, after):
        if change.what == "index":
            yield from _index(facts, change, after)
        elif change.what == "constraint":
            yield from _constraint(facts, change, after)


def _columns(facts: TableFacts, before: TableInfo, after: TableInfo) -> Iterator[CatalogEvent]:
    old, new = before.public_columns, after.public_columns
    if old == new:
        return
    pairs = column_pairs(old, new)
    left, kept = {column.id for column, _ in pairs}, {column.id for _, column in pairs}
    for column in old:
        if column.id not in left:
            yield ColumnDroppedEvent(**facts, column_id=column.id, column_name=column.name)
    for was, now in pairs:
        if was.id == now.id:
            yield from _kept(facts, was, now)
    replaced = {now.id: was for was, now in pairs if was.id != now.id}
    for position, column in enumerate(new):
        if column.id in replaced:
            old_column = replaced[column.id]
            yield ColumnTypeChangedEvent(
                **facts,
                column=column_body(column),
                position=position,
                previous_id=old_column.id,
                previous_name=old_column.name,
                previous_type=old_column.type,
            )
        elif column.id not in kept:
            yield ColumnAddedEvent(**facts, column=column_body(column), position=position)


def _kept(facts: TableFacts, was: Column, now: Column) -> Iterator[CatalogEvent]:
    if was.name != now.name:
        yield ColumnRenamedEvent(
            **facts, column_id=now.id, column_name=now.name, previous_name=was.name
        )
    if (was.default, was.nullable) != (now.default, now.nullable):
        yield ColumnAlteredEvent(**facts, column=column_body(now))


def _index(facts: TableFacts, change: ElementChange, after: TableInfo) -> Iterator[CatalogEvent]:
    id, name = change.id, change.name
    if change.before is ABSENT:
        names = {column.id: column.name for column in after.columns}
        (index,) = (index for index in after.indexes if index.id == id)
        yield IndexCreatedEvent(**facts, index=index_body(index, names))
    if change.after is PUBLIC:
        yield IndexPublicEvent(**facts, index_id=id, index_name=name)
    elif change.after is ABSENT:
        yield IndexDroppedEvent(**facts, index_id=id, index_name=name)
    elif change.before is PUBLIC:
        yield IndexDroppingEvent(**facts, index_id=id, index_name=name)


def _constraint(
    facts: TableFacts, change: ElementChange, after: TableInfo
) -> Iterator[CatalogEvent]:
    id, name = change.id, change.name
    named = [each for each in after.constraints if each.id == id]
    if change.before is ABSENT and named:
        names = {column.id: column.name for column in after.columns}
        yield ConstraintCreatedEvent(**facts, constraint=constraint_body(named[0], names))
    if change.after is PUBLIC:
        yield ConstraintPublicEvent(**facts, constraint_id=id, constraint_name=name)
    elif change.after is ABSENT:
        yield ConstraintDroppedEvent(**facts, constraint_id=id, constraint_name=name)
    elif change.before is PUBLIC:
        yield ConstraintDroppingEvent(**facts, constraint_id=id, constraint_name=name)
