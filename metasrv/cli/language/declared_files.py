"""The files of `metasrv apply` as one desired state, and the place of each of its values."""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import typer

from metasrv.cli.errors.json_places import file_places
from metasrv.cli.errors.places import FilePlace, reason_of
from metasrv.cli.language.yaml_file import YamlFault, documents

STDIN = "-"
ENDINGS = (".yaml", ".yml", ".json", ".sql")
OBJECTS = {
    "": ("placements", "catalogs"),
    "catalogs": ("tablespaces", "schemas"),
    "schemas": ("tables",),
}
"""Member of a desired state -> its members that are lists of objects with names."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A document of a file, and the places of its values."""

    name: str
    value: Any
    places: Mapping[str, str]

    def fault(self, pointer: str, reason: str) -> typer.BadParameter:
        return typer.BadParameter(f"FILE {self.place(pointer)}: {reason}")

    def place(self, pointer: str) -> str:
        while pointer and pointer not in self.places:
            pointer = pointer.rpartition("/")[0]
        return self.places.get(pointer, self.name)


@dataclass(slots=True)
class DeclaredFiles(Mapping[str, str]):
    """The desired state of all files. As a mapping, the places of its values: JSON pointer into the
    request -> `shop.yaml:3:5`."""

    desired: dict[str, Any] = field(default_factory=dict)
    sql: list[dict[str, str]] = field(default_factory=list)
    origins: dict[str, tuple[SourceFile, str]] = field(default_factory=dict)
    """JSON pointer into the desired state -> the file that says it, and the pointer in that."""

    def __getitem__(self, pointer: str) -> str:
        if pointer.startswith("/sql/"):
            number = pointer.removeprefix("/sql/")
            if number.isdigit():
                return self.sql[int(number)]["name"]
            raise KeyError(pointer)
        inside = pointer.removeprefix("/desired")
        above = inside
        while above:
            if above in self.origins:
                file, origin = self.origins[above]
                return FilePlace(file.places[f"{origin}{inside[len(above) :]}"])
            above = above.rpartition("/")[0]
        raise KeyError(pointer)

    def __iter__(self) -> Iterator[str]:
        return iter(self.origins)

    def __len__(self) -> int:
        return len(self.origins)

    def add(self, file: SourceFile) -> None:
        """Raises BadParameter for a document that is no desired state, or that says otherwise than
        a file before it."""
        if file.value is None:
            return
        if not isinstance(file.value, dict):
            raise file.fault("", "it must be an object with `catalogs` or `placements`")
        self._merge(file, "", "", self.desired, file.value, "")

    def _merge(  # noqa: PLR0913  # two values and their places
        self,
        file: SourceFile,
        what: str,
        origin: str,
        target: dict[str, Any],
        value: dict[str, Any],
        pointer: str,
    ) -> None:
        for member, part in value.items():
            here = f"{origin}/{member}"
            if member not in OBJECTS[what]:
                if what == "":
                    expected = " and ".join(OBJECTS[""])
                    raise file.fault(
                        here, f"{member} is no part of a desired state: {expected} are"
                    )
                if target.setdefault(member, part) != part:
                    raise file.fault(here, f"another file says {target[member]!r}")
                self.origins.setdefault(f"{pointer}/{member}", (file, here))
                continue
            if not isinstance(part, list):
                raise file.fault(here, "it must be a list")
            items = target.setdefault(member, [])
            for number, item in enumerate(part):
                if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                    raise file.fault(f"{here}/{number}", "it must be an object with a `name`")
                self._item(file, member, f"{here}/{number}", items, item, f"{pointer}/{member}")

    def _item(  # noqa: PLR0913  # two values and their places
        self,
        file: SourceFile,
        member: str,
        origin: str,
        items: list[Any],
        item: dict[str, Any],
        pointer: str,
    ) -> None:
        """Adds an object: a catalog or a schema to the one of its name."""
        if member not in OBJECTS:
            self.origins[f"{pointer}/{len(items)}"] = (file, origin)
            items.append(item)
            return
        names = [each["name"] for each in items]
        if item["name"] not in names:
            items.append({})
            names.append(item["name"])
        number = names.index(item["name"])
        self._merge(file, member, origin, items[number], item, f"{pointer}/{number}")


def declared_files(paths: list[Path], catalog: str, schema: str) -> DeclaredFiles:
    """The desired state of *paths*: files, folders with all files below them, or `-`. *catalog* and
    *schema*: of what SQL names without them. Raises BadParameter with file, line and column."""
    files = DeclaredFiles()
    for path in [each for root in paths for each in _below(root)]:
        text = _read(path)
        if path.suffix.lower() == ".sql":
            sql = {"name": str(path), "text": text, "catalog": catalog, "schema": schema}
            files.sql.append(sql)
        else:
            for document in _documents(path, text):
                files.add(document)
    return files


def _below(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    below = sorted(each for each in path.rglob("*") if each.suffix.lower() in ENDINGS)
    if not below:
        raise typer.BadParameter(f"FILE {path}: no file in it ends in {' '.join(ENDINGS)}")
    return below


def _read(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == STDIN else path.read_text()
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"FILE {path}: {reason_of(error)}") from error


def _documents(path: Path, text: str) -> Iterator[SourceFile]:
    name = str(path)
    if path.suffix.lower() == ".json":
        try:
            value = json.loads(text)
        except JSONDecodeError as error:
            location = f"{name}:{error.lineno}:{error.colno}"
            raise typer.BadParameter(f"FILE {location}: {reason_of(error)}") from error
        yield SourceFile(name, value, file_places(text, name))
        return
    try:
        for document in documents(text):
            places = {
                pointer: f"{name}:{line}:{column}"
                for pointer, (line, column) in document.places.items()
            }
            yield SourceFile(name, document.value, places)
    except YamlFault as fault:
        location = f"{name}:{fault.line}:{fault.column}"
        raise typer.BadParameter(f"FILE {location}: {fault.reason}") from fault
