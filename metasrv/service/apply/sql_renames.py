"""Renames that SQL declares: `ALTER TABLE orders RENAME TO sales` says that the declared table
`sales` has been `orders`. Pure."""

from collections.abc import Iterable
from typing import Any


def note_rename(
    objects: Iterable[dict[str, Any]], earlier: str, name: str, what: str
) -> str | None:
    """Gives the declared object *name* its earlier name. Returns None, or what was expected where
    there is no such object, or it has another earlier name. *what*: the sort of the objects."""
    if earlier == name:
        return f"another name than {name}"
    for each in objects:
        if each["name"] != name:
            continue
        if each.get("renamed_from") not in (None, earlier):
            return f"one earlier name of {what} {name}, which is {each['renamed_from']}"
        each["renamed_from"] = earlier
        return None
    return f"{what} {name} to be declared too: a rename says which object of before it is"
