"""The default placement, and the tablespace `default` of each catalog, where a cluster was made by
a version that had none. The first leader that knows them makes them, by ordinary changes."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from keys.catalog.catalog import Catalog
from keys.commit.change import change
from keys.commit.txn import snapshot
from keys.key import Key
from keys.model.catalogs import CatalogInfo, CatalogNameKey
from keys.model.log import Entry, PlacementCreated, TablespaceCreated
from keys.model.origin import Origin
from keys.model.placing.placements import DEFAULT_PLACEMENT, PlacementKey, default_placement
from keys.model.placing.tablespaces import DEFAULT_TABLESPACE, TablespaceKey, default_tablespace
from metasrv.leadership.term import Term
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, Unavailable, Unknown

AT_ONCE = 32
"""Catalogs of one transaction."""
AGAIN_MS = 1_000
BY = Origin(by="metasrv", request_id="")


async def make_defaults(term: Term, clock: Clock) -> None:
    """Returns when nothing is missing. Every change is fenced, and compares what it is made for."""
    await term.ready.wait()
    while any(missing(term.ports.applied())):
        with suppress(Unavailable, Unknown, Conflict):
            await _make_some(term, clock.wall_ms())
            continue
        await clock.sleep_ms(AGAIN_MS)


def missing(catalog: Catalog) -> Iterator[CatalogInfo | None]:
    """Yields None for the default placement, then each catalog without its default tablespace."""
    if DEFAULT_PLACEMENT not in catalog.placing.placements:
        yield None
    for name, info in catalog.catalogs.items():
        if DEFAULT_TABLESPACE not in catalog.placing.tablespaces_of(name):
            yield info


async def _make_some(term: Term, now_ms: int) -> None:
    keys: list[Key[Any]] = []
    entries: list[Entry] = []
    for info, _ in zip(missing(term.ports.applied()), range(AT_ONCE), strict=False):
        if info is None:
            keys.append(PlacementKey(DEFAULT_PLACEMENT))
            entries.append(PlacementCreated(info=default_placement(now_ms)))
        else:
            keys += [CatalogNameKey(info.name), TablespaceKey(info.name, DEFAULT_TABLESPACE)]
            entries.append(TablespaceCreated(info=default_tablespace(info)))
    ports = term.ports
    read = await snapshot(ports.kv, *keys, deadline_ms=ports.deadline_ms)
    for key in keys:  # a catalog that is gone, a default that another change has made
        if isinstance(key, CatalogNameKey) == (read.get(key) is None):
            raise Conflict(stale=[str(key)])
    await term.committer.commit(change(read, *entries), origin=BY)
