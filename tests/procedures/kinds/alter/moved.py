"""Elements of a table, moved state by state to their end."""

from keys.model.tables import TableInfo
from procedures.elements.element_targets import ElementTarget, Next, moved


def until_end(
    info: TableInfo, moves: tuple[ElementTarget, ...], following: Next
) -> list[TableInfo]:
    """Each version on one leg of the way."""
    versions = [info]
    while (new := moved(versions[-1], moves, following)) != versions[-1]:
        versions.append(new)
    return versions
