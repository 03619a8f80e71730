"""The catalog's log is cut below a new snapshot, again and again, while tables are made and changed
and leaders die."""

from collections.abc import Coroutine
from typing import Any

from metasrv.sdk.control.namespaces import Catalogs
from metasrv_base.errors import MetaError
from tests.sim.clients.client import Session
from tests.sim.scenario import Plot

EVERY_MS = 1_500
CUT = "updates that a cut deleted"


class Cuts(Plot):
    def _actors(self) -> "list[tuple[str, Coroutine[Any, Any, None]]]":
        return [*super()._actors(), ("archivist", self._cut(self.world.session("archivist")))]

    async def _cut(self, session: Session) -> None:
        """Until the peace: another snapshot, and no history before it."""
        catalogs = Catalogs(session.service)
        for _ in range(self.length.statements):
            await session.think(EVERY_MS)
            try:
                made = await catalogs.snapshot(drop_history=True)
            except MetaError as error:
                session.count(f"a cut refused: {error.code}")
            else:
                self.world.weather.sometimes[CUT] += made.deleted
