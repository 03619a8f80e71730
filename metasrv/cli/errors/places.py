"""Places of a request in the words of the command line: an option instead of a JSON pointer."""

from collections.abc import Mapping, Sequence

Places = Mapping[str, str]
"""A JSON pointer into the request -> the option that made what it points to."""
NO_PLACES: Places = {}
FILE = "/file"
"""Pointer of what is wrong with a file of rows."""


def place_of(pointer: str, places: Places) -> str:
    """The option for *pointer* or the nearest pointer above it; without one, the field's path."""
    above = pointer
    while above:
        if above in places:
            return places[above]
        above = above.rpartition("/")[0]
    return field_of(pointer) if pointer.startswith("/") else pointer


def field_of(pointer: str) -> str:
    """`columns[1].type` for `/columns/1/type`."""
    text = ""
    for part in pointer.removeprefix("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        text += f"[{name}]" if name.isdecimal() else f".{name}" if text else name
    return text


def in_words(text: str, pointer: object, places: Places) -> str:
    """*text* with the place instead of *pointer*."""
    if not isinstance(pointer, str) or not pointer:
        return text
    location = place_of(pointer, places)
    return text.replace(f"At {pointer}:", f"{location}:").replace(pointer, location)


def columns_and_key(columns: Sequence[str], key: Sequence[str], options: Sequence[str]) -> Places:
    """Places of a table that flags describe."""
    return {
        "/name": "TABLE",
        "/columns": "--column",
        **{f"/columns/{number}": f"--column {text}" for number, text in enumerate(columns)},
        "/primary_key": "--key",
        **{f"/primary_key/{number}": f"--key {text}" for number, text in enumerate(key)},
        "/partition": "--partitions",
        "/partition/columns": "--key",
        "/options": "--option",
        **{f"/options/{text.partition('=')[0]}": f"--option {text}" for text in options},
    }
