"""Clients that write and read rows: each has keys of its own, and tells the oracle of every one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metasrv.sdk.rows.rows import AsyncRows
from metasrv_base.errors import Conflict, MetaError, NotFound, Unknown
from metasrv_base.rows.convert import Rows as RowsOf
from tests.sim.checks.oracle import Rows, Written
from tests.sim.clients.client import Session

KEYS = 12
"""Keys of one writer, in each table."""
STATEMENT_MS = 12_000
THINK_MS = 900
AT_ONCE = 4


@dataclass
class Writer:
    """`number` says which keys are its own."""

    session: Session
    number: int
    names: Sequence[str]
    values: int = 0

    async def run(self, statements: int) -> None:
        self.tables = {name: self.session.rows(name) for name in self.names}
        for _ in range(statements):
            await self.session.think(THINK_MS)
            await self._statement()

    async def _statement(self) -> None:
        random = self.session.random
        self.session.oracle.statements += 1
        table = self.tables[random.choice(list(self.names))]
        try:
            bound = await table.binding.get()
        except MetaError as error:
            self.session.count(f"no table: {error.code}")
            return
        rows = self.session.oracle.rows(bound.layout.table_id)
        first = self.number * KEYS
        key = first + random.randrange(KEYS)
        drawn = random.random()
        if drawn < 0.5:
            await self._write(table, rows, "upsert", [key])
        elif drawn < 0.62:
            await self._write(table, rows, "insert", [key])
        elif drawn < 0.75:
            await self._write(table, rows, "delete", [key])
        elif drawn < 0.85:
            await self._write(table, rows, "upsert", random.sample(range(first, first + KEYS), 4))
        else:
            await self._read(table, rows, key)

    async def _write(self, table: AsyncRows, rows: Rows, op: str, keys: Sequence[int]) -> None:
        session = self.session
        began = session.now
        written: dict[int, Written] = {}
        for key in keys:
            self.values += 1
            value = None if op == "delete" else f"{session.name}-{self.values}"
            written[key] = rows.begin(key, value, began)
        try:
            await self._sent(table, op, written)
        except Unknown as error:
            session.count("a statement of which nobody knows")
            self._settle(written, error)
        except MetaError as error:
            session.count(f"a statement refused: {error.code}")
            self._settle(written, error)
            self._judge_refusal(rows, keys, error, began)
        else:
            for one in written.values():
                one.ended = session.now

    async def _sent(self, table: AsyncRows, op: str, written: Mapping[int, Written]) -> None:
        statement = self.session.key()
        if op == "delete":
            await table.delete(list(written), statement_id=statement, deadline_ms=STATEMENT_MS)
            return
        sent: RowsOf = [{"id": key, "v": one.value} for key, one in written.items()]
        act = table.insert if op == "insert" else table.upsert
        await act(sent, statement_id=statement, deadline_ms=STATEMENT_MS)

    def _settle(self, written: Mapping[int, Written], error: MetaError) -> None:
        """Nothing was done, if every region says so; else each row is perhaps there."""
        regions = error.facts.get("regions")
        said = {one["outcome"] for one in regions} if isinstance(regions, list) else set()
        if isinstance(error, Unknown) and not said:
            return
        for one in written.values():
            one.refused = said <= {"not-applied"}

    def _judge_refusal(
        self, rows: Rows, keys: Sequence[int], error: MetaError, began: float
    ) -> None:
        """A key that cannot have been there does not exist already."""
        if isinstance(error, Conflict) and error.code == "already-exists":
            possible = rows.possible(keys[0], began, self.session.now)
            if possible == {None}:
                self.session.wrong(f"key {keys[0]} was said to exist, and does not")

    async def _read(self, table: AsyncRows, rows: Rows, key: int) -> None:
        began = self.session.now
        try:
            found = await table.get(key, deadline_ms=STATEMENT_MS)
        except MetaError as error:
            self.session.count(f"a read refused: {error.code}")
            return
        value = None if found is None else str(found["v"])
        sent = self.session.oracle.sent(began)
        wrong = rows.wrong(key, value, sent, self.session.now)
        if wrong is not None:
            self.session.wrong(f"{table.name}: {wrong}")


async def read_all(session: Session, table: AsyncRows, *, must: bool) -> None:
    """Every row of a table against the oracle. *must*: all is calm, and nothing excuses."""
    began = session.now
    try:
        bound = await table.binding.get()
        found = await table.to_arrow(["id", "v"])
    except NotFound:
        session.count("no table to read")
        return
    except MetaError as error:
        session.count(f"a read refused: {error.code}")
        if must:
            session.wrong(f"{table.name} cannot be read: {error}")
        return
    rows = dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
    table_id = bound.layout.table_id
    sent = began if must else session.oracle.sent(began)
    for wrong in session.oracle.judge(table_id, rows, sent, session.now):
        session.wrong(wrong)
