"""Line and column of each value of a JSON file, by the JSON pointer that a problem names."""

import re
from collections.abc import Iterator
from json import JSONDecoder

from metasrv.cli.errors.places import FilePlace, Places

FILE_CHARS_MAX = 1 << 20
"""The longest file whose places are looked up; of a longer one only the fields are named."""
_DECODER = JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")


def file_places(text: str, name: str, root: str = "") -> Places:
    """Places of *text*, valid JSON: `ops.json:3:5` for the pointer of each value. *root*: goes in
    front of the pointers, as `/operations` for a file that holds the list alone."""
    if len(text) > FILE_CHARS_MAX:
        return {}
    starts = [0, *(number + 1 for number, letter in enumerate(text) if letter == "\n")]
    places: dict[str, str] = {}
    line = 0
    for pointer, position in sorted(_values(text, root), key=lambda value: value[1]):
        while line + 1 < len(starts) and starts[line + 1] <= position:
            line += 1
        places[pointer] = FilePlace(f"{name}:{line + 1}:{position - starts[line] + 1}")
    return places


def _values(text: str, root: str) -> Iterator[tuple[str, int]]:
    """Pointer and position of each value."""
    open_values = [(root, _after_space(text, 0))]
    while open_values:
        pointer, position = open_values.pop()
        yield pointer, position
        if text[position] == "{":
            open_values += _within(_members(text, position), pointer)
        elif text[position] == "[":
            open_values += _within(_items(text, position), pointer)


def _within(parts: Iterator[tuple[str, int]], pointer: str) -> list[tuple[str, int]]:
    return [(f"{pointer}/{part}", position) for part, position in parts]


def _items(text: str, position: int) -> Iterator[tuple[str, int]]:
    number, position = 0, _after_space(text, position + 1)
    while text[position] != "]":
        yield str(number), position
        position = _after_value(text, position)
        number += 1


def _members(text: str, position: int) -> Iterator[tuple[str, int]]:
    position = _after_space(text, position + 1)
    while text[position] != "}":
        name, end = _DECODER.raw_decode(text, position)
        value = _after_space(text, _after_space(text, end) + 1)
        yield name.replace("~", "~0").replace("/", "~1"), value
        position = _after_value(text, value)


def _after_value(text: str, position: int) -> int:
    """The position of the next item, or of the bracket that ends the list."""
    _, end = _DECODER.raw_decode(text, position)
    end = _after_space(text, end)
    return _after_space(text, end + 1) if text[end] == "," else end


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None, "it matches the empty text"
    return match.end()
