"""A read of the catalog: at which version, how fresh, and said so (docs/protocols.md P7)."""

import asyncio
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl

from keys.catalog.catalog import Catalog
from metasrv.service.pages import ListName, PageToken, unseal
from metasrv.service.state.state import ServerState
from metasrv_base.errors import MetaError, NotFound, Refused, Unavailable
from metasrv_base.schema.instants import parse_instant

WAIT_MS_MAX = 4_000
"""The time to wait for a version that this server has not applied yet: less than the 5 s for which
a client lets one server be silent, so that it hears which version there is."""
_VERSION = re.compile(r"version:(0|[1-9][0-9]{0,15})")


@dataclass(frozen=True, slots=True)
class Freshness:
    """The conditions of a reader on the catalog of its answer."""

    min_version: int = 0
    as_of: str | None = None
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class CatalogView:
    """The catalog an answer is made from."""

    catalog: Catalog
    stale: bool
    """The store has been silent for longer than a lease: there may be newer versions."""


async def view(state: ServerState, freshness: Freshness) -> CatalogView:
    """Raises Unavailable("stale") if it cannot be had in time, or has to be fresh and is not;
    Refused("history-expired") for a version below the log; Unavailable("not-ready") for a time that
    is not over as far as the log tells, and for a version that takes long to rebuild."""
    version, at_ms = as_of(freshness.as_of)
    await _reached(state, max(freshness.min_version, version or 0))
    stale = state.is_stale
    if stale and freshness.fresh:
        raise Unavailable("stale", version=state.follower.catalog.version)
    if at_ms is not None:
        await _closed(state, at_ms)
        version = await _version_at(state, at_ms)
    if version is None:
        return CatalogView(state.follower.catalog, stale)
    if at_ms is not None and version == 0:
        reason = "it is before the first version of this cluster's catalog"
        raise NotFound(what="catalog of", name=freshness.as_of, reason=reason)
    # a version that was is never out of date
    return CatalogView(await catalog_at(state, version), stale=False)


async def catalog_at(state: ServerState, version: int) -> Catalog:
    """The catalog of a version that this server has applied, from memory or rebuilt from the log.

    Raises as `OldVersions.at`.
    """
    return state.follower.at(version) or await state.old.at(version)


async def _closed(state: ServerState, at_ms: int) -> None:
    """Once no commit at or before *at_ms* can come any more, and all that did are applied here.

    A later commit proves it; where there is none yet, the leader stores its word. Raises
    Unavailable("not-ready") for a time that is not over, and where no leader can say.
    """
    if at_ms <= state.follower.log.closed_ms:
        return
    try:
        if at_ms > state.clock.wall_ms():
            raise Unavailable
        term = await state.leading()
        term.committer.must_have_space()
        async with asyncio.timeout(WAIT_MS_MAX / 1000):
            await state.closing.close(at_ms, state.follower, term.committer, state.clock)
    except (TimeoutError, MetaError) as error:
        raise Unavailable("not-ready", what="the catalog as of that time") from error


def is_open(state: ServerState, query: bytes) -> bool:
    """Whether *query* asks for a time that only the leader can close."""
    text = dict(parse_qsl(query.decode("latin-1"))).get("as_of")
    _, at_ms = as_of(text)
    return at_ms is not None and at_ms > state.follower.log.closed_ms


async def _version_at(state: ServerState, at_ms: int) -> int:
    """The last version that was committed at or before *at_ms*, which is closed.

    Commit times rise with versions.
    """
    follower = state.follower
    low, high = follower.oldest_version, follower.catalog.version
    oldest = follower.at(low)
    if oldest is not None and at_ms < oldest.at_ms:
        return await state.old.version_at(at_ms)
    while low < high:
        middle = (low + high + 1) // 2
        catalog = follower.at(middle)
        is_before = catalog is None or catalog.at_ms <= at_ms  # what is not kept is the oldest
        low, high = (middle, high) if is_before else (low, middle - 1)
    return low


async def page_view(
    state: ServerState, freshness: Freshness, name: ListName, text: str | None
) -> tuple[CatalogView, PageToken | None]:
    """The view of a page: a token binds it to the version of the first page.

    Raises Refused: "bad-page-token", or "page-token-expired" if that version is below the log; and
    Unavailable("not-ready") as `view`.
    """
    if text is None:
        return await view(state, freshness), None
    token = unseal(name, text)
    await _reached(state, token.version)
    try:
        return CatalogView(await catalog_at(state, token.version), stale=False), token
    except Refused as error:
        raise Refused("page-token-expired") from error


async def _reached(state: ServerState, version: int) -> None:
    """Waits until this server has applied *version*. Raises Unavailable("stale")."""
    try:
        await state.follower.wait_for(version, deadline_ms=WAIT_MS_MAX)
    except Unavailable as error:
        applied = state.follower.catalog.version
        raise Unavailable("stale", found=applied, expected=version) from error


def as_of(text: str | None) -> tuple[int | None, int | None]:
    """The version, or the wall clock time in ms, of which the catalog is wanted; or neither.

    Raises Refused("invalid-request").
    """
    if text is None:
        return None, None
    match = _VERSION.fullmatch(text)
    if match is not None:
        return int(match[1]), None
    if text.startswith("version:"):
        raise Refused("invalid-request", expected="as_of=version:<n>", found=text)
    return None, parse_instant(text, "ms", "as_of")
