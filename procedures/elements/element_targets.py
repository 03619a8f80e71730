"""The elements of one table on their way in and out: which states are next. Pure.

Every function takes the table as one version has it and returns it as the next one has it; who
publishes that, and what must be waited for before, is in procedures/steps/transitions.py.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias, assert_never

from keys.model.elements import Element, graph_of
from keys.model.tables import Column, Constraint, ConstraintKind, Index, TableInfo
from keys.value import StoredPart
from metasrv_base.elements.graph import Path
from metasrv_base.elements.states import ElementState
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import parse_type

ABSENT, WRITE_ONLY, PUBLIC = ElementState.ABSENT, ElementState.WRITE_ONLY, ElementState.PUBLIC
_ZEROS: Mapping[str, JsonScalar] = {
    "boolean": False,
    "int8": 0,
    "int16": 0,
    "int32": 0,
    "int64": 0,
    "float32": 0.0,
    "float64": 0.0,
    "string": "",
    "binary": "",
    "date": "1970-01-01",
    "timestamp": "1970-01-01T00:00:00Z",
}
"""A value of each type but decimal, in JSON form, for rows that nobody gave one."""


class What(StrEnum):
    COLUMN = "column"
    INDEX = "index"
    CONSTRAINT = "constraint"


class ElementTarget(StoredPart):
    """The target state of one element of one table."""

    what: What
    id: int
    to: ElementState
    """PUBLIC or ABSENT; WRITE_ONLY: a constraint that is left there, its rows not looked at."""
    was: ElementState = ElementState.PUBLIC
    """State before the change; restored if the change is undone."""
    generated: bool = False
    """Whether it gets an origin default while it is dropped, which it loses if the drop is
    undone."""
    lossy: bool = False
    """Whether some values of the replaced column do not fit: the rows are then checked."""
    behind: bool = False
    """Whether it is dropped after the constraints over it, which the same change drops: while
    one of them is checked, every statement must know the column's value."""

    @property
    def adds(self) -> bool:
        return self.to is not ABSENT


Next: TypeAlias = Callable[[ElementTarget, Element], ElementState | None]
"""The state that an element takes next on one leg of its way; None: it has come to the end."""


def element_of(info: TableInfo, move: ElementTarget) -> Element | None:
    """Returns the element that *move* names; None if it is absent."""
    return next((element for element in _all(info, move.what) if element.id == move.id), None)


def moved(info: TableInfo, moves: Iterable[ElementTarget], following: Next) -> TableInfo:
    """Each element one step on; the same value if none has a step left."""
    for move in moves:
        element = element_of(info, move)
        state = None if element is None else following(move, element)
        if element is not None and state is not None:
            info = _placed(info, move, element, state)
    return _settled(info)


# The legs of the way ------------------------------------------------------------------------------


def to_last_undoable(move: ElementTarget, element: Element) -> ElementState | None:
    """Returns the next state on the way to the last one from which the whole change can be undone;
    None: that one is reached."""
    if move.behind:
        return None
    graph = graph_of(element)
    if move.adds:
        end, path = graph.cancel_limit, graph.add
    else:
        end, path = graph.undrop_limit, graph.drop
    return None if element.state is end else graph.after(element.state, path)


def past_no_return(move: ElementTarget, element: Element) -> ElementState | None:
    """The one step after which there is no way back."""
    if element.state is move.to or move.behind:
        return None
    graph = graph_of(element)
    return graph.after(element.state, graph.add if move.adds else graph.drop)


def to_end(move: ElementTarget, element: Element) -> ElementState | None:
    """Returns the next state of an element that is dropped; None: it is absent, or is being
    added."""
    return None if move.adds else graph_of(element).after(element.state, graph_of(element).drop)


def back(move: ElementTarget, element: Element) -> ElementState | None:
    """Returns the next state when the change is undone: an added element goes as if it were
    dropped, a dropped one becomes public again; None: it is where it was."""
    if element.state is move.was:
        return None
    if not move.adds:
        return PUBLIC
    rest: Path = graph_of(element).cancel(element.state)
    return rest[0]


# What it makes of the table -----------------------------------------------------------------------


def _all(info: TableInfo, what: What) -> Sequence[Element]:
    match what:
        case What.COLUMN:
            return info.columns
        case What.INDEX:
            return info.indexes
        case What.CONSTRAINT:
            return info.constraints
        case _:
            assert_never(what)


def _placed(
    info: TableInfo, move: ElementTarget, element: Element, state: ElementState
) -> TableInfo:
    """*info* with that element in that state."""
    new = element.model_copy(update={"state": state})
    if isinstance(new, Constraint) and state is PUBLIC:
        new = new.model_copy(update={"holds": True})
    if move.generated and isinstance(element, Column) and not move.adds:
        new = new.model_copy(
            update={"origin_default": None if state is PUBLIC else _origin(element)}
        )
    match new:
        case Column():
            columns = tuple(new if other.id == new.id else other for other in info.columns)
            return info.model_copy(update={"columns": columns})
        case Index():
            indexes = tuple(new if other.id == new.id else other for other in info.indexes)
            return info.model_copy(update={"indexes": indexes})
        case Constraint():
            constraints = tuple(new if other.id == new.id else other for other in info.constraints)
            return info.model_copy(update={"constraints": constraints})
        case _:
            assert_never(new)


def _origin(column: Column) -> JsonScalar:
    """Returns a default with which a holder that no longer knows the column can insert rows that
    are readable for holders that know it."""
    type = parse_type(column.type)
    return f"{0:.{type.scale}f}" if type.name == "decimal" else _ZEROS[type.name]


def _settled(info: TableInfo) -> TableInfo:
    """Returns *info* without absent elements and references to them. A NOT NULL constraint sets
    `nullable` of its column and is itself stored only while it changes."""
    nullable = {
        column: constraint.state is not PUBLIC
        for constraint in info.constraints
        if constraint.kind is ConstraintKind.NOT_NULL
        for column in constraint.columns
    }
    columns = [
        column.model_copy(update={"nullable": nullable[column.id]})
        if nullable.get(column.id, column.nullable) != column.nullable
        else column
        for column in info.columns
    ]
    return info.model_copy(
        update={
            "columns": tuple(_alone([column for column in columns if column.state is not ABSENT])),
            "indexes": tuple(index for index in info.indexes if index.state is not ABSENT),
            "constraints": tuple(
                constraint for constraint in info.constraints if not _is_said_elsewhere(constraint)
            ),
        }
    )


def _alone(columns: Sequence[Column]) -> Iterator[Column]:
    """Yields the columns; a replacement whose counterpart is gone becomes an ordinary column."""
    ids = {None, *(column.id for column in columns)}
    for column in columns:
        if column.replaces in ids and column.replaced_by in ids:
            yield column
            continue
        yield column.model_copy(update={"replaces": None, "replaced_by": None})


def _is_said_elsewhere(constraint: Constraint) -> bool:
    held = constraint.kind is ConstraintKind.NOT_NULL and constraint.state is PUBLIC
    return held or constraint.state is ABSENT
