"""Places of a request in the words of the command line: an option instead of a JSON pointer."""

from collections.abc import Mapping, Sequence

Places = Mapping[str, str]
"""A JSON pointer into the request -> the option that made what it points to."""
NO_PLACES: Places = {}
QUERY = {"as_of": "--as-of", "since": "--since", "until": "--until"}
"""A parameter of a query -> the option that made it."""
FILE = "/file"
"""Pointer of what is wrong with a file of rows."""


class FilePlace(str):
    """`ops.json:3:5`, line and column of a value: a field below it is named too."""

    __slots__ = ()


def place_of(pointer: str, places: Places) -> str:
    """The option for *pointer* or the nearest pointer above it; without one, the field's path."""
    above = pointer
    while above:
        if above in places:
            option = places[above]
            return f"{option}: {field_of(pointer)}" if isinstance(option, FilePlace) else option
        above = above.rpartition("/")[0]
    return field_of(pointer) if pointer.startswith("/") else QUERY.get(pointer, pointer)


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
    marked = f"At {pointer}:"
    return text.replace(*((marked, f"{location}:") if marked in text else (pointer, location)))


def reason_of(error: Exception) -> str:
    """The fault of a file, without its name and without a number of the system."""
    if isinstance(error, OSError):
        return str(error.strerror or error).lower()
    return str(getattr(error, "msg", error))


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
