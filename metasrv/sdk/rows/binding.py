"""A table as this client knows it: layout and route, read together, and again when wrong."""

from collections.abc import Mapping
from dataclasses import dataclass

from metasrv.sdk.control.names import TableName
from metasrv.sdk.control.service import ControlService
from metasrv_base.errors import NotFound, Unavailable, Unknown
from metasrv_base.rows.layout import Layout
from metasrv_base.wire.api.tables import RegionRouteBody, TableBody


@dataclass(frozen=True, slots=True)
class Bound:
    """One reading. Rows of one statement are encoded for one layout."""

    body: TableBody
    layout: Layout
    regions: Mapping[int, RegionRouteBody]
    """Regions by number."""
    reading: int
    """Rises with each reading of this binding."""

    @classmethod
    def of(cls, body: TableBody, reading: int) -> "Bound":
        regions = {region.number: region for region in body.regions}
        return cls(body, Layout.of(body), regions, reading)


class Binding:
    """Bound by name at first touch, then by id: a rename does not reach it, a drop ends it."""

    def __init__(self, service: ControlService, name: TableName) -> None:
        self.service = service
        self.name = name
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

    def doubt(self, used: Bound) -> None:
        """A region did not answer as this reading would have it. A statement whose time is up does
        not look again itself: without this the next would go the same wrong way, for ever."""
        self._doubted = max(self._doubted, used.reading)

    async def read_again(self, used: Bound) -> Bound:
        """Newer than `used`. If nobody can say, the old one: its nodes may still answer.

        Raises NotFound `table-not-found` if the table was dropped.
        """
        if self._bound is not None and self._bound.reading > used.reading:
            return self._bound
        try:
            path = f"/v1/tables/{used.layout.table_id}"
            body = await self.service.read_catalog(TableBody, path)
        except (Unavailable, Unknown):
            return used
        except NotFound:
            self.forget()
            raise
        if body.dropped_at is not None:
            self.forget()
            raise NotFound("table-not-found", name=str(self.name), table_id=body.id)
        return self._take(body)

    def forget(self) -> None:
        """The next statement binds by name."""
        self._bound = None

    def _take(self, body: TableBody) -> Bound:
        self._readings += 1
        self._bound = Bound.of(body, self._readings)
        return self._bound
