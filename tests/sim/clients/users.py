"""Clients that read and write rows through frontends, and tell the model of every statement."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.service import FrontendService
from dataplane.frontend.statements.query import LIMIT, range_of
from dataplane.frontend.statements.reads import PageOf
from dataplane.frontend.statements.scans import Place
from dataplane.frontend.statements.writes import StatementTimes
from metasrv_base.errors import Conflict, MetaError, Unknown
from tests.sim.clients.client import Session
from tests.sim.clients.frontend_line import Line
from tests.sim.clients.shaped import COPY, SPARSE, TOKEN, Shaped, Statement

THINK_MS = 900
KEYS = 8
"""Keys of one user; as many are shared by all."""
VALUES = 4
"""Values of a column, few so that entries of an index share them."""
TRIES_MAX = 3
Row = Mapping[str, Any]


@dataclass
class User:
    """`number` says which keys are its own."""

    line: Line
    table: Shaped
    number: int
    tokens: int = 0

    @property
    def session(self) -> Session:
        return self.line.session

    @property
    def name(self) -> tuple[str, str, str]:
        return "main", "public", self.table.name

    async def run(self, statements: int) -> None:
        for _ in range(statements):
            await self.session.think(THINK_MS)
            self.session.oracle.statements += 1
            await self._statement()

    async def fill(self) -> None:
        """Rows of before, while all is calm."""
        keys = range(KEYS * self.number, KEYS * (self.number + 1))
        while any(None in self.table.rows.possible(key, *(2 * [self.session.now])) for key in keys):
            await self.session.think(THINK_MS)
            await self._send(Op.UPSERT, list(keys))

    async def _statement(self) -> None:
        drawn = self.session.random.random()
        if drawn < 0.35:
            await self._write(Op.UPSERT, 1)
        elif drawn < 0.43:
            await self._write(Op.UPSERT, 3)
        elif drawn < 0.52:
            await self._write(Op.INSERT, 1)
        elif drawn < 0.67:
            await self._write(Op.UPDATE, 1)
        elif drawn < 0.77:
            await self._write(Op.DELETE, 1)
        elif drawn < 0.85:
            await self._read(self._key())
        elif drawn < 0.95:
            await self._read_by_index()
        else:
            await read_whole(self.line, self.table, must=False)

    # ---- writes

    def _key(self) -> int:
        random = self.session.random
        first = 0 if random.random() < 0.15 else KEYS * self.number
        return first + random.randrange(KEYS)

    def _row(self, op: Op, key: int) -> dict[str, Any]:
        if op is Op.DELETE:
            return {"id": key}
        random = self.session.random
        self.tokens += 1
        token = f"{self.session.name}-{self.tokens}"
        row: dict[str, Any] = {"id": key, TOKEN: token, COPY: token}
        for column in self.table.known(self.session.now):
            drawn = random.random()
            if drawn < 0.45:
                row[column.name] = random.randrange(self._spread(column.name))
            elif drawn < 0.5:
                row[column.name] = None
        return row

    def _spread(self, column: str) -> int:
        return self.table.spread if column == SPARSE else VALUES

    async def _write(self, op: Op, count: int) -> None:
        await self._send(op, sorted({self._key() for _ in range(count)}))

    async def _send(self, op: Op, keys: Sequence[int]) -> None:
        session = self.session
        rows = [self._row(op, key) for key in keys]
        statement = self.table.begin(op, rows, session.now)
        id, times = session.key().ljust(16, "-"), StatementTimes(session.clock.wall_ms())

        async def act(service: FrontendService) -> object:
            return await service.writes.rows(self.name, op, rows, id, times)

        for tried in range(TRIES_MAX):
            try:
                await self.line.ask(act)
            except Unknown as error:
                session.count("a statement of which nobody knows")
                if session.random.random() < 0.5 and tried + 1 < TRIES_MAX:
                    session.count("a statement sent again, through any frontend")
                    await session.think(2 * THINK_MS)
                    continue
                if tried == 0:
                    _settle(statement, error)
            except MetaError as error:
                session.count(f"refused by a frontend: {error.code}")
                if tried == 0:
                    _settle(statement, error)
                    self._judge_refusal(op, keys, error, statement.began)
            else:
                self._judge_rows(op, rows, statement.began)
                statement.done(session.now)
            return

    def _judge_rows(self, op: Op, rows: Sequence[Row], began: float) -> None:
        """None that was acknowledged is against a constraint that stood all the while."""
        if op is not Op.DELETE:
            for wrong in self.table.rules.wrong_writes(rows, began, self.session.now):
                self.session.wrong(f"{self.table.name} was written to: {wrong}")

    def _judge_refusal(self, op: Op, keys: Sequence[int], error: MetaError, began: float) -> None:
        """A key that cannot have been there does not exist already, nor the other way round; and
        what breaks a constraint breaks one that there is."""
        if error.code == "constraint-violated":
            self.session.count("a row against a constraint")
            if not self.table.rules.may_refuse(began, self.session.now):
                self.session.wrong(f"{self.table.name} has no constraint: {error}")
        if not isinstance(error, Conflict) or len(keys) > 1:
            return
        possible = self.table.rows.possible(keys[0], began, self.session.now)
        if error.code == "already-exists" and possible == {None}:
            self.session.wrong(f"key {keys[0]} was said to exist, and does not")
        if error.code == "row-missing" and None not in possible:
            self.session.wrong(f"key {keys[0]} was said to be missing, and is there")

    # ---- reads

    async def _read(self, key: int) -> None:
        began = self.session.now

        async def act(service: FrontendService) -> PageOf:
            return await service.reads.by_key(self.name, lambda layout: (key,))

        found = await read(self.line, act)
        if found is None:
            return
        sent, now = self.session.oracle.sent(began), self.session.now
        wrong = (
            self.table.wrong_row(found[0], sent, now)
            if found
            else self.table.rows.wrong(key, None, sent, now)
        )
        if wrong is not None:
            self.session.wrong(f"{self.table.name}: {wrong}")

    async def _read_by_index(self) -> None:
        now, random = self.session.now, self.session.random
        names = [one.name for one in self.table.indexes.values() if one.may_be_there(now, now)]
        if not names:
            return
        name = random.choice(names)
        first = self.table.indexes[name].columns[0]
        value: str | int = random.randrange(self._spread(first))
        if first in (TOKEN, COPY):
            possible = self.table.rows.possible(self._key(), now, now)
            value = random.choice(sorted(map(str, possible)))
        await read_by_index(self.line, self.table, name, value)


async def read(line: Line, act: Callable[[FrontendService], Awaitable[PageOf]]) -> list[Row] | None:
    """None: it could not be done."""
    try:
        page = await line.ask(act)
    except MetaError as error:
        line.session.count(f"a read refused by a frontend: {error.code}")
        return None
    rows: list[Row] = page.rows.to_pylist()
    return rows


async def read_by_index(line: Line, table: Shaped, name: str, value: str | int) -> None:
    session, began = line.session, line.session.now
    index = table.indexes[name]
    names = ("main", "public", table.name)

    async def act(service: FrontendService) -> PageOf:
        opened, place = await service.scans.begin_index(
            names, name, lambda schema: range_of(schema.index(name), {"eq": [str(value)]})
        )
        return (await service.scans.page(opened, place, LIMIT))[0]

    found = await read(line, act)
    if found is None:
        return
    session.count("a read by an index")
    now = session.now
    if not index.may_be_there(began, now):
        session.wrong(f"{table.name}: index {name} answers, and is not there")
    sent = session.oracle.sent(began)
    for wrong in table.wrong_by_index(name, value, found, sent, now):
        session.wrong(wrong)


async def read_by_indexes(line: Line, table: Shaped) -> None:
    """Reads all entries of every index, by the values that rows may have."""
    now = line.session.now
    for index in table.indexes.values():
        if index.is_there(now, now):
            for value in table.values(index.columns[0], now):
                await read_by_index(line, table, index.name, value)


async def read_whole(line: Line, table: Shaped, *, must: bool) -> None:
    """Every row against the model. *must*: all is calm, and nothing excuses."""
    session, began = line.session, line.session.now

    async def act(service: FrontendService) -> PageOf:
        opened = await service.scans.begin_rows(("main", "public", table.name), None)
        return (await service.scans.page(opened, Place(), LIMIT))[0]

    found = await read(line, act)
    if found is None:
        if must:
            session.wrong(f"{table.name} cannot be read")
        return
    sent = began if must else session.oracle.sent(began)
    for wrong in table.wrong_rows(found, sent, session.now):
        session.wrong(wrong)


def _settle(statement: Statement, error: MetaError) -> None:
    """Nothing was done, if every region says so; else each row is perhaps there."""
    regions = error.facts.get("regions")
    said = {one["outcome"] for one in regions} if isinstance(regions, list) else set()
    if (not isinstance(error, Unknown) or said) and said <= {"not-applied"}:
        statement.refused()
