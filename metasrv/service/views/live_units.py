"""Units of views that only the present knows, read by the functions of the routes for them."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from metasrv.service.cluster import holders, nodes, settings
from metasrv.service.history.changes import Filters
from metasrv.service.history.history_page import HistoryPage, PageRequest
from metasrv.service.pages import ListName, PageToken, seal
from metasrv.service.past.version_reader import VersionReader
from metasrv.service.procedures import steering
from metasrv.service.procedures.procedure_list import Filter, ListWanted, listed
from metasrv.service.state.state import ServerState
from metasrv.service.views.scope import ViewScope
from metasrv.service.views.view import Position, Units, ViewFacts
from metasrv_base.concurrency.turns import slices

PROCEDURES_AT_ONCE = 128
LOCKS_AT_ONCE = 128
UNITS_AT_ONCE = 128
CHANGES_AT_ONCE = 32
_PATH = "/v1/information-schema"


async def node_units(
    state: ServerState, facts: ViewFacts, scope: ViewScope, low: Position | None
) -> AsyncIterator[Units]:
    """Yields the nodes, by id."""
    there = [((node.id,), node) for node in (await nodes.nodes(state)).nodes]
    for some in slices(_above(there, low), UNITS_AT_ONCE):
        yield some


async def frontend_units(
    state: ServerState, facts: ViewFacts, scope: ViewScope, low: Position | None
) -> AsyncIterator[Units]:
    """Yields the frontends, by id."""
    leases = await holders.leases(state, None, None)
    there = [((holder.holder_id,), holder) for holder in leases.holders]
    for some in slices(_above(there, low), UNITS_AT_ONCE):
        yield some


async def setting_units(
    state: ServerState, facts: ViewFacts, scope: ViewScope, low: Position | None
) -> AsyncIterator[Units]:
    """Yields the settings, by name."""
    there = [((setting.name,), setting) for setting in (await settings.settings(state)).settings]
    yield _above(there, low)


async def lock_units(
    state: ServerState, facts: ViewFacts, scope: ViewScope, low: Position | None
) -> AsyncIterator[Units]:
    """Yields the locks, by key. Each page is read when it is asked for, so pages differ in age."""
    name = ListName((await state.leading()).cluster_id, _PATH)
    token: str | None = None
    if low is not None and str(low[0]):
        before = str(low[0])[:-1]  # whatever sorts below the key and above no other is good enough
        token = seal(name, PageToken(0, (before,)))
    while True:
        page = await steering.locks(state, _PATH, LOCKS_AT_ONCE, token)
        yield _above([((lock.key,), lock) for lock in page.locks], low)
        token = page.next_page_token
        if token is None:
            return


async def procedure_units(
    state: ServerState, facts: ViewFacts, scope: ViewScope, low: Position | None
) -> AsyncIterator[Units]:
    """Yields the procedures, newest first, behind the one at *low*. Histories are read from the
    store."""
    parents = scope.texts("parent_id")
    only = Filter(
        states=scope.texts("state") or (),
        kinds=scope.texts("kind") or (),
        parent=next(iter(parents)) if parents is not None and len(parents) == 1 else None,
    )
    name = ListName((await state.leading()).cluster_id, _PATH, only.parts)
    token = None if low is None else seal(name, PageToken(0, (str(low[0]),)))
    while True:
        page = await listed(state, ListWanted(_PATH, PROCEDURES_AT_ONCE, token, only))
        yield [((procedure.id,), procedure) for procedure in page.procedures]
        token = page.next_page_token
        if token is None:
            return


async def version_units(
    state: ServerState, facts: ViewFacts, scope: ViewScope, low: Position | None
) -> AsyncIterator[Units]:
    """Yields the changes up to the version of the catalog, newest first, as far back as the log."""
    newest = facts.catalog.version
    below = newest + 1 if low is None else int(low[0]) + 1
    while True:
        request = PageRequest(newest, below, CHANGES_AT_ONCE, Filters(), transitions=False)
        page = HistoryPage(request, VersionReader(state))
        await page.read()
        yield [((change.version,), change) for change in page.changes]
        if page.after is None:
            return
        below = page.after


def _above(units: Sequence[tuple[Position, Any]], low: Position | None) -> Units:
    """Returns the units from the position on."""
    return units if low is None else [unit for unit in units if unit[0] >= low]
