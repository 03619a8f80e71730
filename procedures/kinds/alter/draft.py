"""A table while the operations of one alter are judged one after the other. Pure."""

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

    def moves_column(self, id: int) -> bool:
        return any(move.what is What.COLUMN and move.id == id for move in self.moves)


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
