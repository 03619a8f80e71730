"""The near name, for a word that is none of those it could be."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

import typer

from metasrv_base.errors import MetaError, NotFound

if TYPE_CHECKING:
    from metasrv.sdk.sync import Client

_NAMES: Mapping[object, "Callable[[Client], list[str]]"] = {
    "setting": lambda client: [setting.name for setting in client.settings.list()],
    "node": lambda client: [node.id for node in client.nodes.list()],
    "catalog": lambda client: [catalog.name for catalog in client.catalogs.list()],
}
"""Kinds of objects whose names the service lists."""


def must_be_among(word: str, allowed: Sequence[str], option: str, what: str) -> None:
    """Raises BadParameter for a word that is not *allowed*."""
    if word in allowed:
        return
    close = get_close_matches(word, allowed, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise typer.BadParameter(f"{option}: there is no {what} {word}; {hint}all: {' '.join(allowed)}")


@contextmanager
def suggesting(client: "Client") -> Iterator[None]:
    """Adds the near name to a NotFound, if the service lists objects of its kind."""
    try:
        yield
    except NotFound as error:
        close = _close(client, error)
        if not close:
            raise
        facts = {**error.facts, "did_you_mean": close[0]}
        raise NotFound(error.code, **facts) from error


def _close(client: "Client", error: NotFound) -> list[str]:
    if error.code == "table-not-found":
        return _close_table(client, str(error.facts.get("name")))
    names = _NAMES.get(error.facts.get("what"))
    if names is None:
        return []
    try:
        return get_close_matches(str(error.facts.get("name")), names(client), n=1)
    except MetaError:  # the first error is the one to be told
        return []


def _close_table(client: "Client", full_name: str) -> list[str]:
    """Among those of its schema that begin with the same letter."""
    within, _, name = full_name.rpartition(".")
    if not within or not name:
        return []
    try:
        tables = client.tables.list(within, name[0])
    except MetaError:
        return []
    return get_close_matches(name, [table.name for table in tables], n=1)
