"""A table while the operations of one alter are judged one after the other. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

from keys.model.tables import Column, Constraint, TableInfo
from metasrv_base.errors import Conflict, Refused
from procedures.elements.element_targets import ElementTarget, What


@dataclass(frozen=True, slots=True)
class AlterDraft:
    """The result of the operations of an alter."""

    whole: TableInfo
    """The table as users will know it; only to judge the operations one after the other."""
    entered: TableInfo
    """The table as it is, with what is to come in it, still absent. Nobody stores this either."""
    moves: tuple[ElementTarget, ...] = ()
    edits: frozenset[int] = frozenset()
    """Ids of columns that were given another name or default, perhaps the one they had."""

    def moves_column(self, id: int) -> bool:
        return self._move_of(What.COLUMN, id) is not None

    def moves_index(self, id: int) -> bool:
        return self._move_of(What.INDEX, id) is not None

    def drops_index(self, id: int) -> bool:
        move = self._move_of(What.INDEX, id)
        return move is not None and not move.adds

    def _move_of(self, what: What, id: int) -> ElementTarget | None:
        return next((move for move in self.moves if (move.what, move.id) == (what, id)), None)


def near_name(name: str, names: list[str]) -> dict[str, str]:
    """`did_you_mean` among the facts of an error, or nothing."""
    close = get_close_matches(name, names, n=1)
    return {"did_you_mean": close[0]} if close else {}


def column_named(info: TableInfo, name: str, pointer: str) -> Column:
    for column in info.columns:
        if column.name == name:
            return column
    close = get_close_matches(name, [column.name for column in info.columns], n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise wrong(pointer, f"column {name} does not exist{hint}")


def settled_column(draft: AlterDraft, name: str, pointer: str) -> Column:
    """Returns the column *name* of the table. Raises Refused if it is missing or this alter
    changes it."""
    column = column_named(draft.whole, name, pointer)
    if column.replaces is not None:
        raise wrong(pointer, f"the type of column {name} changes: alter it alone, the rest then")
    if draft.moves_column(column.id):
        raise wrong(pointer, f"column {name} is new: say all of it where it is added")
    return column


def must_stay(draft: AlterDraft, columns: Collection[int], pointer: str, what: str) -> None:
    """Raises Refused if this alter adds a column of *columns* or changes its type: a *what* over it
    would outlive it where the alter is undone."""
    for column in draft.whole.columns:
        if column.id in columns and draft.moves_column(column.id):
            change = "is new" if column.replaces is None else "changes its type"
            raise wrong(pointer, f"column {column.name} {change}: add the {what} afterwards")


def must_be_free(name: str, names: list[str], pointer: str, what: str = "column") -> None:
    """Case does not count. A name is taken as long as anything bears it that is not yet gone."""
    holder = next((other for other in names if other.lower() == name.lower()), None)
    if holder is not None:
        raise Conflict("already-exists", what=what, name=holder, pointer=pointer)


def with_column(info: TableInfo, new: Column, after: int | None) -> TableInfo:
    ids = [column.id for column in info.columns]
    position = len(ids) if after is None else ids.index(after) + 1
    columns = (*info.columns[:position], new, *info.columns[position:])
    return info.model_copy(update={"columns": columns, "next_column_id": new.id + 1})


def with_changed(info: TableInfo, column: Column) -> TableInfo:
    columns = tuple(column if other.id == column.id else other for other in info.columns)
    return info.model_copy(update={"columns": columns})


def with_constraint(info: TableInfo, new: Constraint) -> TableInfo:
    update = {"constraints": (*info.constraints, new), "next_constraint_id": new.id + 1}
    return info.model_copy(update=update)


def wrong(pointer: str, reason: str) -> Refused:
    return Refused("invalid-schema-change", pointer=pointer, reason=reason)
