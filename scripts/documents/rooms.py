"""docs/rooms.md: the folders of code, and which of them import which.

Code is read as syntax trees, never imported. A room is a folder that holds modules itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from scripts.documents.facts import facts
from scripts.documents.references import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/rooms.md"
HEADER = """\
# Rooms

Generated from the imports of the code by `make generate`; do not edit. A room is a folder of
modules; an arrow means "imports". Which arrows there may be is said by the contracts in
`pyproject.toml`; what each room is for stands in [AGENTS.md](../AGENTS.md).
"""

Imports = Mapping[str, frozenset[str]]
"""Room -> rooms that its modules import, itself left out."""


def pages() -> Mapping[str, str]:
    """Returns the generated page; called by scripts/generate.py."""
    rooms = imports_of(ROOT)
    parts = [HEADER, *(part for package in PACKAGES for part in _package(package, rooms))]
    return {PAGE: "\n".join(parts)}


@cache
def imports_of(root: Path) -> Imports:
    found: dict[str, set[str]] = {}
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            if file.name == "__init__.py":
                continue
            room = file.parent.relative_to(root).as_posix()
            named = (_room_of(root, name) for name in facts(file).modules)
            found.setdefault(room, set()).update(other for other in named if other is not None)
    return {room: frozenset(others - {room}) for room, others in sorted(found.items())}


def _room_of(root: Path, module: str) -> str | None:
    """None: the module is not ours."""
    path = root.joinpath(*module.split("."))
    if module.partition(".")[0] not in PACKAGES or not path.with_suffix(".py").exists():
        return None
    return path.parent.relative_to(root).as_posix()


def _package(package: str, rooms: Imports) -> Iterator[str]:
    own = [room for room in rooms if room.partition("/")[0] == package]
    yield f"## {package}\n"
    if len(own) > 1:
        yield _picture(own, rooms)
    yield "| room | imports of other packages |"
    yield "| --- | --- |"
    for room in own:
        others = sorted(other for other in rooms[room] if other not in own)
        yield f"| `{room}/` | {', '.join(f'`{other}/`' for other in others) or 'nothing'} |"
    yield ""


def _picture(own: Iterable[str], rooms: Imports) -> str:
    """The rooms of one package, with the arrows between them."""
    own = list(own)
    nodes = [f'  {_id(room)}["{room}"]' for room in own]
    arrows = [
        f"  {_id(room)} --> {_id(other)}"
        for room in own
        for other in sorted(rooms[room])
        if other in own
    ]
    return "\n".join(["```mermaid", "flowchart TD", *nodes, *arrows, "```", ""])


def _id(room: str) -> str:
    return room.replace("/", "_")
