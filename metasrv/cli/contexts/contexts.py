"""Named services of a user, in a file of their own: for each its URLs, and the file of its token.

The file holds no token: a copy of it, or a look at it, gives nothing away.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

FILE = "metasrv/contexts.json"
FORMAT = 1
VARIABLE = "METASRV_CONTEXT"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
OWNER_ONLY = 0o600
FOLDER_OWNER_ONLY = 0o700


@dataclass(frozen=True, slots=True)
class NamedService:
    """One service, as commands reach it."""

    metasrv: str
    """URLs with commas between."""
    token_file: str | None = None
    """An absolute path; None: the service asks for no token."""

    def token(self) -> str | None:
        """Raises BadParameter for a file that holds none, or that others can read."""
        if self.token_file is None:
            return None
        from metasrv_base.token import optional_token

        try:
            return optional_token(Path(self.token_file))
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts of a user."""

    current: str | None = None
    """The name of the one that commands use unless they are told another."""
    by_name: Mapping[str, NamedService] = field(default_factory=dict)

    def get(self, name: str) -> NamedService:
        """Raises BadParameter for a name that none has."""
        context = self.by_name.get(name)
        if context is None:
            close = get_close_matches(name, self.by_name, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise typer.BadParameter(
                f"there is no context {name}; {hint}`metasrv context list` shows them"
            )
        return context

    def with_context(self, name: str, context: NamedService) -> "Contexts":
        """Raises BadParameter for a name that no context may have."""
        if NAME.fullmatch(name) is None:
            raise typer.BadParameter(
                f"{name!r} is no name: letters, digits, `.`, `_` and `-`, at most 64"
            )
        return replace(self, by_name={**self.by_name, name: context})

    def without(self, name: str) -> "Contexts":
        """None is in use if *name* was."""
        self.get(name)
        rest = {other: context for other, context in self.by_name.items() if other != name}
        return Contexts(None if self.current == name else self.current, rest)

    def using(self, name: str | None) -> "Contexts":
        if name is not None:
            self.get(name)
        return replace(self, current=name)


def contexts_path(environment: Mapping[str, str]) -> Path:
    """The file, in the folder of the user's configuration ($XDG_CONFIG_HOME)."""
    named = environment.get("XDG_CONFIG_HOME", "")
    folder = Path(named) if named.startswith("/") else Path.home() / ".config"
    return folder / FILE


def read_contexts(environment: Mapping[str, str]) -> Contexts:
    """None without a file. Raises BadParameter for one that cannot be read, or is of another
    format."""
    path = contexts_path(environment)
    try:
        return _contexts(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise typer.BadParameter(f"{path} is no file of contexts: {error}") from error


def write_contexts(environment: Mapping[str, str], contexts: Contexts) -> None:
    """Puts a new file in the place of the old one, for its owner alone. Raises BadParameter."""
    path = contexts_path(environment)
    by_name = {name: asdict(context) for name, context in sorted(contexts.by_name.items())}
    document = {"format": FORMAT, "current": contexts.current, "contexts": by_name}
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(FOLDER_OWNER_ONLY, parents=True, exist_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY)
        with os.fdopen(descriptor, "w") as file:
            file.write(json.dumps(document, indent=2) + "\n")
        new.replace(path)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}") from error


def context_in_use(environment: Mapping[str, str]) -> str | None:
    """The name in METASRV_CONTEXT, else that of the file; None: no context is used."""
    return environment.get(VARIABLE) or read_contexts(environment).current


def _contexts(document: Any) -> Contexts:
    if document["format"] != FORMAT:
        raise ValueError(f"its format is {document['format']}, not {FORMAT}")
    by_name = {str(name): _context(fields) for name, fields in document["contexts"].items()}
    return Contexts(document["current"], by_name)


def _context(fields: Any) -> NamedService:
    token_file = fields["token_file"]
    return NamedService(str(fields["metasrv"]), None if token_file is None else str(token_file))
