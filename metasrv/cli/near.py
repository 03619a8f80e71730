"""The near name, for a word that is none of those it could be."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

import typer

from metasrv_base.errors import NotFound

if TYPE_CHECKING:
    from metasrv.sdk.sync import Client


ALL_MAX = 40
"""Words that are listed where one is none of those allowed."""


def must_be_among(word: str, allowed: Sequence[str], option: str, what: str) -> None:
    """Raises BadParameter for a word that is not *allowed*."""
    if word in allowed:
        return
    close = get_close_matches(word, allowed, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    more = f" and {len(allowed) - ALL_MAX} more" if len(allowed) > ALL_MAX else ""
    names = " ".join(allowed[:ALL_MAX]) + more
    raise typer.BadParameter(f"{option}: there is no {what} {word}; {hint}all: {names}")


@contextmanager
def suggesting(client: "Client") -> Iterator[None]:
    """Adds to a NotFound the near name, or without one the names that exist."""
    try:
        yield
    except NotFound as error:
        if "did_you_mean" in error.facts:
            raise
        from metasrv.cli.errors.known_names import suggestion

        if not (more := suggestion(client, error)):
            raise
        raise NotFound(error.code, **{**error.facts, **more}) from error
