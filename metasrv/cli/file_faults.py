"""The line and the column of a fault in a file of rows: Arrow tells a number at most."""

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path

UTF_8 = "utf-8"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The encoding of a CSV file, its delimiter and its spellings of null."""

    nulls: tuple[str, ...] = ()
    """Fields that are null besides the empty one; a field in quotes never is."""
    encoding: str = UTF_8
    delimiter: str = ","


PLAIN = Dialect()
_CONVERSION = re.compile(
    r"In CSV column #(?P<column>\d+):(?: CSV conversion error to (?P<type>[^:]+):)? .*?"
    r"'(?P<value>.*)'(?: is (?P<why>.*))?",
    re.DOTALL,
)
_TIMESTAMP = re.compile(r"timestamp\[(\w+)(?:, tz=\w+)?\]")
_DECIMAL = re.compile(r"decimal(?:128|256)(?= number)")
_WIDTH = re.compile(r".*Expected (?P<expected>\d+) columns, got (?P<found>\d+)")
_CHANGED = re.compile(
    r".*Column\(/(?P<column>[^)]*)\) changed from (?P<type>\w+) to (?P<found>\w+)"
)
_JSON_TYPES = {"number": (int, float), "string": (str,), "boolean": (bool,), "object": (dict,)}


def faulty(path: Path, reason: str, dialect: Dialect) -> str:
    """*reason*, as Arrow says it, with the line and the name of the column. Reads the file again
    from its start."""
    first = reason.partition("\n")[0]
    if match := _CONVERSION.match(reason):
        return _conversion(path, match, dialect) or first
    if match := _WIDTH.match(reason):
        return _width(path, int(match["expected"]), dialect) or first
    if path.suffix.lower() in (".ndjson", ".jsonl"):
        return _json(path, _CHANGED.match(reason)) or first
    return first


def _conversion(path: Path, match: re.Match[str], dialect: Dialect) -> str | None:
    position, value = int(match["column"]), match["value"]
    with path.open(newline="", encoding=dialect.encoding) as file:
        reader = csv.reader(file, delimiter=dialect.delimiter)
        head = next(reader)
        for row in reader:
            if position < len(row) and row[position] == value:
                column = head[position]
                return f"line {reader.line_num}, column {column}: {value!r} is {_why(match)}"
    return None


def line_fault(reason: str, head: str, dialect: Dialect) -> str:
    """*reason*, as Arrow says it of one line below the header *head*, with the column's name."""
    match = _CONVERSION.match(reason)
    names = next(csv.reader([head], delimiter=dialect.delimiter), [])
    if match is None or int(match["column"]) >= len(names):
        return reason.partition("\n")[0]
    return f"column {names[int(match['column'])]}: {match['value']!r} is {_why(match)}"


def _why(match: re.Match[str]) -> str:
    return in_our_types(match["why"] or f"no {match['type']}")


def in_our_types(text: str) -> str:
    """*text* with the names of Arrow's types as columns of a table have them."""
    return _TIMESTAMP.sub(r"timestamp(\1)", _DECIMAL.sub("decimal", text))


def _width(path: Path, expected: int, dialect: Dialect) -> str | None:
    with path.open(newline="", encoding=dialect.encoding) as file:
        reader = csv.reader(file, delimiter=dialect.delimiter)
        for row in reader:
            if row and len(row) != expected:
                return f"line {reader.line_num} has {len(row)} fields; the header has {expected}"
    return None


def _json(path: Path, changed: re.Match[str] | None) -> str | None:
    """The first line that is no JSON object, or whose column is of another type."""
    types = () if changed is None else _JSON_TYPES.get(changed["type"], ())
    with path.open(encoding=UTF_8) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                reason = getattr(error, "msg", error)
                return f"line {number}, character {getattr(error, 'colno', 1)}: {reason}"
            if not isinstance(row, dict):
                return f"line {number} is no JSON object"
            value = None if changed is None else row.get(changed["column"])
            if changed is not None and value is not None and not isinstance(value, types):
                shown = json.dumps(value, ensure_ascii=False)
                return f"line {number}, column {changed['column']}: {shown} is no {changed['type']}"
    return None
