"""A client whose reads take rows of a declared age, from whichever copy answers.

Such a read has all that was acknowledged so long before it was sent. What it has is not lost any
more: reads after it have that too, or what came since (docs/protocols.md P4.6).
"""

from dataclasses import dataclass

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.service import FrontendService
from dataplane.frontend.statements.query import LIMIT, range_of
from dataplane.frontend.statements.reads import PageOf
from dataplane.frontend.statements.scans import IndexScan, RowScan, Scan
from tests.sim.clients.client import Session
from tests.sim.clients.frontend_line import Line
from tests.sim.clients.shaped import Shaped
from tests.sim.clients.users import KEYS, read

THINK_MS = 900
LAGS_MS = (500, 1_500, 4_000, 15_000)
DRIFT = 0.01
"""More than the share by which the clock of a node runs slow."""
BY_KEY = "a read by key that took rows of a declared age"
WHOLE = "a read of a table that took rows of a declared age"
BY_INDEX = "a read by an index that took rows of a declared age"


@dataclass
class LaggingReader:
    line: Line
    table: Shaped
    users: int
    """Number of those that write, each to keys of its own."""

    @property
    def session(self) -> Session:
        return self.line.session

    @property
    def name(self) -> tuple[str, str, str]:
        return "main", "public", self.table.name

    async def run(self, reads: int) -> None:
        for _ in range(reads):
            await self.session.think(THINK_MS)
            lag_ms = self.session.random.choice(LAGS_MS)
            drawn = self.session.random.random()
            if drawn < 0.5:
                await self._by_key(lag_ms)
            elif drawn < 0.8:
                await self._whole(lag_ms)
            else:
                await self._by_index(lag_ms)

    async def _by_key(self, lag_ms: int) -> None:
        key, began = self.session.random.randrange(KEYS * self.users), self.session.now

        async def act(service: FrontendService) -> PageOf:
            return await service.reads.by_key(self.name, lambda layout: (key,), lag_ms)

        found = await read(self.line, act)
        if found is None:
            return
        self.session.count(BY_KEY)
        since, now, table = self._since(began, lag_ms), self.session.now, self.table
        wrong = (
            table.wrong_row(found[0], since, now)
            if found
            else table.rows.wrong(key, None, since, now)
        )
        if wrong is not None:
            self._wrong(lag_ms, wrong)

    async def _whole(self, lag_ms: int) -> None:
        began = self.session.now

        def make(schema: Schema) -> Scan:
            return RowScan(schema, schema.layout.chosen(None))

        async def act(service: FrontendService) -> PageOf:
            return await service.reads.page(self.name, make, None, LIMIT, lag_ms)

        found = await read(self.line, act)
        if found is not None:
            self.session.count(WHOLE)
            since = self._since(began, lag_ms)
            for wrong in self.table.wrong_rows(found, since, self.session.now):
                self._wrong(lag_ms, wrong)

    async def _by_index(self, lag_ms: int) -> None:
        session, began = self.session, self.session.now
        known = [one for one in self.table.indexes.values() if one.is_there(began, began)]
        if not known:
            return
        index = session.random.choice(known)
        values = self.table.values(index.columns[0], began)
        if not values:
            return
        value = session.random.choice(values)

        def make(schema: Schema) -> Scan:
            wanted = range_of(schema.index(index.name), {"eq": [value]})
            return IndexScan(schema, schema.index(index.name), wanted.end, wanted.first)

        async def act(service: FrontendService) -> PageOf:
            return await service.reads.page(self.name, make, None, LIMIT, lag_ms)

        found = await read(self.line, act)
        if found is None:
            return
        session.count(BY_INDEX)
        since, now = self._since(began, lag_ms), session.now
        for wrong in self.table.wrong_by_index(index.name, value, found, since, now):
            self._wrong(lag_ms, wrong)

    def _since(self, began: float, lag_ms: int) -> float:
        """The moment of which the rows may be."""
        sent = self.session.oracle.sent(began)
        return sent if sent < began else began - lag_ms / 1000 * (1 + DRIFT) - 0.01

    def _wrong(self, lag_ms: int, text: str) -> None:
        self.session.wrong(f"{self.table.name}, rows of up to {lag_ms} ms: {text}")
