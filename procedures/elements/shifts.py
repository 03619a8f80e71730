"""Differences between two versions of a table: elements from state to state, and edits. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from keys.model.elements import Element
from keys.model.tables import Constraint, ConstraintKind, TableInfo
from keys.model.transitions import ElementChange
from metasrv_base.elements.states import ElementState
from procedures.elements.element_targets import What


def shifts(before: TableInfo, after: TableInfo) -> tuple[ElementChange, ...]:
    """Columns, then indexes, then constraints; by id."""
    return (
        *_between(What.COLUMN, before.columns, after.columns, before, after),
        *_between(What.INDEX, before.indexes, after.indexes, before, after),
        *_between(What.CONSTRAINT, before.constraints, after.constraints, before, after),
    )


def _between(
    what: What,
    old: Sequence[Element],
    new: Sequence[Element],
    before: TableInfo,
    after: TableInfo,
) -> Iterator[ElementChange]:
    was, now = {element.id: element for element in old}, {element.id: element for element in new}
    for id in sorted(was.keys() | now.keys()):
        element = now.get(id) or was[id]
        left = was[id].state if id in was else _unlisted(before, element)
        came = now[id].state if id in now else _unlisted(after, element)
        if left is not came:
            yield ElementChange(what=what.value, id=id, name=element.name, before=left, after=came)


def _unlisted(info: TableInfo, element: Element) -> ElementState:
    """The state of an element that *info* does not list: that no value of a column is null is
    said by the column once it is public."""
    if isinstance(element, Constraint) and element.kind is ConstraintKind.NOT_NULL:
        held = [column for column in info.columns if column.id in element.columns]
        if held and not any(column.nullable for column in held):
            return ElementState.PUBLIC
    return ElementState.ABSENT


@dataclass(frozen=True, slots=True)
class Edit:
    """A name, a default or an option that has another value."""

    what: str
    """`column` or `table`."""
    name: str
    """Name before the change."""
    attribute: str
    """`name`, `default` or `option NAME`."""
    before: JsonValue
    """Value before, in JSON form; None: there was none."""
    after: JsonValue


def edits(before: TableInfo, after: TableInfo) -> Iterator[Edit]:
    """The table first, then columns by place; of columns that both versions have."""
    if before.full_name != after.full_name:
        yield Edit("table", before.full_name, "name", before.full_name, after.full_name)
    for option in sorted(before.options.keys() | after.options.keys()):
        was, now = before.options.get(option), after.options.get(option)
        if was != now:
            yield Edit("table", before.full_name, f"option {option}", was, now)
    columns = {column.id: column for column in before.columns}
    for column in after.columns:
        old = columns.get(column.id, column)
        if old.name != column.name:
            yield Edit("column", old.name, "name", old.name, column.name)
        if old.default != column.default:
            yield Edit("column", old.name, "default", old.default, column.default)
