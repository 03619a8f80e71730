"""A table as this client knows it: layout and route, read together, and again when wrong."""

from collections.abc import Mapping
from dataclasses import dataclass

from metasrv.sdk.control.names import TableName
from metasrv.sdk.control.service import ControlService
from metasrv_base.clock import Clock
from metasrv_base.errors import NotFound, Unavailable, Unknown
from metasrv_base.rows.layout import Layout
from metasrv_base.wire.api.tables import RegionRouteBody, TableBody

AGE_MS_MAX = 600_000
"""Age in ms at which a reading is renewed by whoever reads whole regions: no error says that a
region has more copies by now."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One reading. Rows of one statement are encoded for one layout."""

    body: TableBody
    layout: Layout
    regions: Mapping[int, RegionRouteBody]
    """Regions by number."""
    reading: int
    """Rises with each reading of this binding."""
    read_at_ms: int = 0
    """Time of the binding's clock at which it was read."""

    @classmethod
    def of(cls, body: TableBody, reading: int, read_at_ms: int = 0) -> "Bound":
        regions = {region.number: region for region in body.regions}
        return cls(body, Layout.of(body), regions, reading, read_at_ms)


class Binding:
    """Bound by name at first touch, then by id: a rename does not reach it, a drop ends it."""

    def __init__(self, service: ControlService, name: TableName, clock: Clock) -> None:
        self.service = service
        self.name = name
        self._clock = clock
        self._bound: Bound | None = None
        self._readings = 0
        self._doubted = 0
        """Readings up to this one may be wrong."""

    async def get(self) -> Bound:
        """The table as last read; read again at the first call, and after `doubt`."""
        if self._bound is None:
            self._take(await self.service.read_catalog(TableBody, self.name.path))
        assert self._bound is not None
        if self._bound.reading <= self._doubted:
            return await self.read_again(self._bound)
        return self._bound

    async def newest(self, used: Bound) -> Bound:
        """The table of *used*, and never another of its name, as last read; read again after
        `doubt`, and once it is AGE_MS_MAX old. Raises as `read_again`."""
        bound = self._last_of(used) or used
        is_old = self._clock.mono_ms() - bound.read_at_ms >= AGE_MS_MAX
        if is_old or bound.reading <= self._doubted:
            return await self.read_again(bound)
        return bound

    def doubt(self, used: Bound) -> None:
        """A region did not answer as this reading would have it. A statement whose time is up does
        not look again itself: without this the next would go the same wrong way, for ever."""
        self._doubted = max(self._doubted, used.reading)

    async def read_again(self, used: Bound) -> Bound:
        """The table of `used`, newer. If nobody can say, the old one: its nodes may still answer.

        Raises NotFound `table-not-found` if the table was dropped, whichever has its name by now.
        """
        last = self._last_of(used)
        if last is not None and last.reading > used.reading:
            return last
        try:
            path = f"/v1/tables/{used.layout.table_id}"
            body = await self.service.read_catalog(TableBody, path)
        except (Unavailable, Unknown):
            return used
        except NotFound:
            self._forget(used)
            raise
        if body.dropped_at is not None:
            self._forget(used)
            raise NotFound("table-not-found", name=str(self.name), table_id=body.id)
        return self._take(body)

    def forget(self) -> None:
        """The next statement binds by name."""
        self._bound = None

    def _last_of(self, used: Bound) -> Bound | None:
        """The last reading of the table of *used*. None: this is bound to no table, or another."""
        bound = self._bound
        is_same = bound is not None and bound.layout.table_id == used.layout.table_id
        return bound if is_same else None

    def _forget(self, dropped: Bound) -> None:
        if self._last_of(dropped) is not None:
            self.forget()

    def _take(self, body: TableBody) -> Bound:
        self._readings += 1
        self._bound = Bound.of(body, self._readings, self._clock.mono_ms())
        return self._bound
