"""Scans of many pages by an index, beside statements that move rows in it.

A page is a snapshot: it has each row once, under a value that the row had while the page was read,
in the order of the index. A row that nobody changed during a scan is in it exactly once.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from dataplane.frontend.service import FrontendService
from dataplane.frontend.statements.query import range_of
from dataplane.frontend.statements.reads import PageOf
from metasrv_base.errors import MetaError, Unknown
from tests.sim.checks.oracle import Written
from tests.sim.clients.client import Session
from tests.sim.clients.frontend_line import Line
from tests.sim.clients.shaped import COPY, TOKEN, Index, Shaped

THINK_MS = 1_200
BETWEEN_MS = 250
"""Between two pages of a scan."""
ROWS = (1, 2, 2, 3)
"""The rows of a page."""
PAGES_MAX = 60
PATIENCE_S = 2.0
"""For one answer; a scan is open for ten."""
LOST = 0.2
"""The chance of an answer to be lost behind the network, while it storms."""
ASKED_MAX = 3
"""Requests for one page, while its answers are lost."""
FAILOVERS = "a procedure ended: failover_table"
BESIDE_UPDATE = "an index scan beside a statement that moved a row in it"
BESIDE_CHANGE = "an index scan beside a change of its table"
BESIDE_TROUBLE = "an index scan beside a fault"
BESIDE_FAILOVER = "an index scan beside a failover"
ASKED_AGAIN = "a page of an index scan whose answer was lost"

Row = Mapping[str, Any]
Rank = tuple[tuple[bool, Any], ...]
"""The place of a row in an index: nulls first, then values, then the key."""


@dataclass
class Scan:
    """One scan, and what it has read."""

    table: Shaped
    index: Index
    began: float
    rows: list[tuple[int, Row]] = field(default_factory=list)
    """The number of the page, and the row."""
    is_complete: bool = False

    def rank(self, row: Row) -> Rank:
        values = (row[name] for name in (*self.index.columns, "id"))
        return tuple((value is not None, value or 0) for value in values)

    def wrong_order(self) -> str | None:
        """An entry that does not stand behind the one before it."""
        ranks = [self.rank(row) for _, row in self.rows]
        for before, after in pairwise(ranks):
            if after <= before:
                return f"{after} was read behind {before}"
        return None

    def twice(self) -> list[int]:
        """Keys that one snapshot had twice. A page over several regions is a snapshot of each."""
        seen = [(page, row["id"]) for page, row in self.rows]
        return sorted({key for page, key in seen if seen.count((page, key)) > 1})

    def missing(self, sent: float, now: float) -> list[int]:
        """Keys of rows that stood where they stand all the while, and were not read once."""
        found = [row["id"] for _, row in self.rows]
        return [
            key
            for key in sorted(self.table.rows.keys)
            if self._stands(key, sent, now) and found.count(key) != 1
        ]

    def _stands(self, key: int, sent: float, now: float) -> bool:
        if None in self.table.rows.possible(key, sent, now):
            return False
        return all(len(self._values(name, key, sent, now)) == 1 for name in self.index.columns)

    def _values(self, column: str, key: int, sent: float, now: float) -> set[str | None]:
        table = self.table
        rows = table.rows if column in (TOKEN, COPY) else table.columns[column]
        return rows.possible(key, sent, now)

    def is_beside_update(self, now: float) -> bool:
        """Whether a row was put elsewhere in the index by a statement that was acknowledged."""
        return any(
            one.is_sure and one.began <= now and one.ended >= self.began
            for written in self._written()
            for one in written
        )

    def _written(self) -> Sequence[list[Written]]:
        first, table = self.index.columns[0], self.table
        rows = table.rows if first in (TOKEN, COPY) else table.columns[first].values
        return list(rows.keys.values())

    def is_beside_change(self, now: float) -> bool:
        table = self.table
        elements = (*table.columns.values(), *table.indexes.values(), *table.rules.rules)
        return any(one.is_moving(self.began, now) for one in elements)


@dataclass
class Scanner:
    """Reads by any index, from its beginning or from a value on, page by page."""

    line: Line
    table: Shaped

    @property
    def session(self) -> Session:
        return self.line.session

    async def run(self, scans: int) -> None:
        for _ in range(scans):
            await self.session.think(THINK_MS)
            await self.scan()

    async def scan(self) -> None:
        session, random = self.session, self.session.random
        known = [
            one for one in self.table.indexes.values() if one.is_there(session.now, session.now)
        ]
        if not known:
            return
        session.oracle.statements += 1
        scan = Scan(self.table, random.choice(known), session.now)
        weather = session.network.weather
        was_troubled, failovers = weather.troubles > 0, weather.sometimes[FAILOVERS]
        line = Line(session, [random.choice(self.line.frontends)])  # it alone knows the scan
        await self._read(line, scan)
        if len({page for page, _ in scan.rows}) > 1:
            self._count(scan, was_troubled, failovers)
        self._judge(scan)

    async def _read(self, line: Line, scan: Scan) -> None:
        session, limit, token = self.session, self.session.random.choice(ROWS), None
        for number in range(PAGES_MAX):
            began = session.now
            page = await self._page(line, self._asks(scan, token, limit))
            if page is None:
                return
            rows: list[Row] = page.rows.to_pylist()
            scan.rows += [(number, row) for row in rows]
            self._judge_page(scan, rows, began if number == 0 else scan.began)
            token = page.next_page_token
            if token is None:
                scan.is_complete = True
                return
            await session.think(BETWEEN_MS)

    def _asks(
        self, scan: Scan, token: str | None, limit: int
    ) -> Callable[[FrontendService], Awaitable[PageOf]]:
        names = ("main", "public", self.table.name)

        async def act(service: FrontendService) -> PageOf:
            if token is None:
                opened, place = await service.scans.begin_index(
                    names,
                    scan.index.name,
                    lambda schema: range_of(schema.index(scan.index.name), {}),
                )
            else:
                opened, place = service.scans.resume(token)
            return (await service.scans.page(opened, place, limit))[0]

        return act

    async def _page(
        self, line: Line, act: Callable[[FrontendService], Awaitable[PageOf]]
    ) -> PageOf | None:
        """Asked for again while its answer is lost, as a token may be used twice."""
        session = self.session
        for _ in range(ASKED_MAX):
            try:
                page = await line.ask(act, PATIENCE_S)
                if session.random.random() >= LOST * session.network.weather.storm:
                    return page
                session.count(ASKED_AGAIN)
            except Unknown:
                session.count(ASKED_AGAIN)
            except MetaError as error:
                session.count(f"an index scan refused: {error.code}")
                return None
        return None

    # ---- what was read

    def _judge_page(self, scan: Scan, rows: Sequence[Row], began: float) -> None:
        sent, now = self.session.oracle.sent(began), self.session.now
        for row in rows:
            wrong = self.table.wrong_row(row, sent, now)
            if wrong is not None:
                self._wrong(scan, wrong)

    def _judge(self, scan: Scan) -> None:
        sent, now = self.session.oracle.sent(scan.began), self.session.now
        wrong = scan.wrong_order()
        if wrong is not None:
            self._wrong(scan, wrong)
        for key in scan.twice() if self.table.regions == 1 else ():
            self._wrong(scan, f"key {key} twice in a page")
        for key in scan.missing(sent, now) if scan.is_complete else ():
            count = [row["id"] for _, row in scan.rows].count(key)
            self._wrong(scan, f"key {key} stood there, and was read {count} times")

    def _wrong(self, scan: Scan, text: str) -> None:
        self.session.wrong(f"scan of {self.table.name} by {scan.index.name}: {text}")

    def _count(self, scan: Scan, was_troubled: bool, failovers: int) -> None:
        session, weather = self.session, self.session.network.weather
        session.count("an index scan of several pages")
        if scan.is_beside_update(session.now):
            session.count(BESIDE_UPDATE)
        if scan.is_beside_change(session.now):
            session.count(BESIDE_CHANGE)
        if was_troubled or weather.troubles:
            session.count(BESIDE_TROUBLE)
        if weather.sometimes[FAILOVERS] > failovers:
            session.count(BESIDE_FAILOVER)
