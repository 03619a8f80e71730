"""A read of the catalog: at which version, how fresh, and said so (PROTOCOLS P7)."""

import re
from dataclasses import dataclass

from base.errors import Refused, Unavailable
from keys.catalog import Catalog
from metasrv.service.pages import ListName, Token, unseal
from metasrv.service.state import ServerState

WAIT_MS_MAX = 5_000  # for a version that this server has not applied yet
_VERSION = re.compile(r"version:(0|[1-9][0-9]{0,15})")


@dataclass(frozen=True, slots=True)
class Freshness:
    """What a reader requires of the catalog it is answered from."""

    min_version: int = 0
    as_of: str | None = None
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """The catalog an answer is made from."""

    catalog: Catalog
    stale: bool
    """The store has been silent for longer than a lease: there may be newer versions."""


async def view(state: ServerState, wanted: Freshness) -> View:
    """Raises Unavailable("stale") if it cannot be had in time, or has to be fresh and is not;
    Refused("history-expired") for a version that is not kept any more."""
    version = as_of_version(wanted.as_of)
    await _reached(state, max(wanted.min_version, version or 0))
    stale = state.is_stale
    if stale and wanted.fresh:
        raise Unavailable("stale", version=state.follower.catalog.version)
    if version is None:
        return View(state.follower.catalog, stale)
    catalog = state.follower.at(version)
    if catalog is None:
        raise Refused("history-expired", version=version)
    return View(catalog, stale=False)  # a version that was is never out of date


async def page_view(
    state: ServerState, wanted: Freshness, name: ListName, text: str | None
) -> tuple[View, Token | None]:
    """The view of a page: a token binds it to the version of the first page.

    Raises Refused: "bad-page-token", or "page-token-expired" if that version is not kept here.
    """
    if text is None:
        return await view(state, wanted), None
    token = unseal(name, text)
    await _reached(state, token.version)
    catalog = state.follower.at(token.version)
    if catalog is None:
        raise Refused("page-token-expired")
    return View(catalog, stale=False), token


async def _reached(state: ServerState, version: int) -> None:
    """Once this server has applied *version*. Raises Unavailable("stale")."""
    try:
        await state.follower.wait_for(version, deadline_ms=WAIT_MS_MAX)
    except Unavailable as error:
        found = state.follower.catalog.version
        raise Unavailable("stale", found=found, expected=version) from error


def as_of_version(text: str | None) -> int | None:
    """`version:<n>`. Times come with the issue that keeps history by time."""
    if text is None:
        return None
    found = _VERSION.fullmatch(text)
    if found is None:
        raise Refused("invalid-request", expected="as_of=version:<n>", found=text)
    return int(found[1])
