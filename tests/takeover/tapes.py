"""A life on tape: every commit of its store, and between them what became of its nodes.

A line is a moment of it, so every beginning of a tape is what a server of that version left when it
died there. Tapes are files under `tests/golden/takeover/<version>/`; `taping.py` makes them.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from keys.packed import JSON, TEMPLATED, packing_of
from tests.fakes.datanodes.picture import Picture

FOLDER = Path(__file__).parent.parent / "golden" / "takeover"
PROCEDURE = "__procedure/"
PACKED = "base64"
"""The only key of what stands for a packed value; no stored value has it."""
Write: TypeAlias = tuple[str, Any]
"""A key, and its value as `value_of` has it; None: it is deleted."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One transaction, its writes in order."""

    at_ms: int
    writes: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class Nodes:
    """The changes that orders and jobs have made since the line before."""

    at_ms: int
    changes: Picture


Line: TypeAlias = Commit | Nodes
Tape: TypeAlias = tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a server of *version* died: behind so many lines of the scenario's tape."""

    version: str
    scenario: str
    lines: int


def path_of(version: str, scenario: str) -> Path:
    return FOLDER / version / f"{re.sub('[^a-z_]+', '-', scenario)}.jsonl"


def read(version: str, scenario: str) -> Tape:
    return tuple(_parsed(text) for text in path_of(version, scenario).read_text().splitlines())


def written(tape: Tape) -> str:
    return "".join(f"{_text(line)}\n" for line in tape)


def value_of(raw: bytes) -> Any:
    """Returns the form on the tape of a stored value: its JSON, or the bytes of a packed one."""
    if packing_of(raw, TEMPLATED) == JSON:
        return json.loads(raw)
    return {PACKED: base64.b64encode(raw).decode()}


def value_bytes(value: Any) -> bytes:
    """As it was stored, byte for byte."""
    if isinstance(value, dict) and PACKED in value:
        return base64.b64decode(value[PACKED], validate=True)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def living_at(tape: Tape) -> Iterator[dict[str, Any]]:
    """Behind each line: records of procedures that are not over."""
    living: dict[str, Any] = {}
    for line in tape:
        moved = line.writes if isinstance(line, Commit) else ()
        for key, value in moved:
            if key.startswith(PROCEDURE):
                living[key.removeprefix(PROCEDURE)] = value
        living = {name: record for name, record in living.items() if record is not None}
        yield living


def unfinished(tape: Tape) -> list[int]:
    """Beginnings of it, by their number of lines, that leave a procedure to be finished."""
    return [number for number, living in enumerate(living_at(tape), 1) if living]


def states_of(tapes: Iterable[Tape]) -> set[str]:
    """`kind: step` and `kind: undo step` of every record at any moment."""
    return {
        f"{record['kind']}: {'undo ' if record['phase'] == 'undo' else ''}{record['step']}"
        for tape in tapes
        for living in living_at(tape)
        for record in living.values()
    }


def _text(line: Line) -> str:
    body = {"writes": line.writes} if isinstance(line, Commit) else {"nodes": line.changes}
    return value_bytes({"at_ms": line.at_ms, **body}).decode()


def _parsed(text: str) -> Line:
    line = json.loads(text)
    if "writes" in line:
        return Commit(line["at_ms"], tuple((key, value) for key, value in line["writes"]))
    return Nodes(line["at_ms"], line["nodes"])
