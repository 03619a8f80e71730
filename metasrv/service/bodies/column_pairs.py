"""Columns of two versions of a table that are the same, or took each other's place. Pure."""

from collections.abc import Sequence

from keys.model.tables import Column

ColumnPair = tuple[Column, Column]


def column_pairs(before: Sequence[Column], after: Sequence[Column]) -> list[ColumnPair]:
    """Columns of both versions, by id; then each that was replaced, by a change of type, with the
    one in its place."""
    new_ids = {column.id: column for column in after}
    pairs = [(old, new_ids[old.id]) for old in before if old.id in new_ids]
    both = {old.id for old, _ in pairs}
    gone = [column for column in before if column.id not in both]
    came = [column for column in after if column.id not in both]
    for old in gone:
        new = next((each for each in came if _is_in_place_of(old, each)), None)
        if new is not None:
            came.remove(new)
            pairs.append((old, new))
    return pairs


def _is_in_place_of(old: Column, new: Column) -> bool:
    """Whether one of the two was made of the other by a change of type."""
    later = {origin.id for origin in new.origin_columns}
    earlier = {origin.id for origin in old.origin_columns}
    return old.id in later or new.id in earlier
