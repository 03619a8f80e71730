"""Which elements differ between two versions of a table, from state to state. Pure."""

from collections.abc import Iterator, Sequence

from base.elements.states import ElementState
from keys.elements import Element
from keys.tables import Constraint, ConstraintKind, TableInfo
from keys.transitions import Shift
from procedures.moves import What


def shifts(before: TableInfo, after: TableInfo) -> tuple[Shift, ...]:
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
) -> Iterator[Shift]:
    was, now = {one.id: one for one in old}, {one.id: one for one in new}
    for id in sorted(was.keys() | now.keys()):
        element = now.get(id) or was[id]
        left = was[id].state if id in was else _unlisted(before, element)
        came = now[id].state if id in now else _unlisted(after, element)
        if left is not came:
            yield Shift(what=what.value, id=id, name=element.name, before=left, after=came)


def _unlisted(info: TableInfo, element: Element) -> ElementState:
    """The state of an element that *info* does not list: that no value of a column is null is
    said by the column once it is public."""
    if isinstance(element, Constraint) and element.kind is ConstraintKind.NOT_NULL:
        held = [one for one in info.columns if one.id in element.columns]
        if held and not any(column.nullable for column in held):
            return ElementState.PUBLIC
    return ElementState.ABSENT
