"""Who changes a table under its users: columns and indexes come and go, several at once, and some
changes are cancelled on the way."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from base.errors import MetaError
from base.wire.procedures import ProcedureBody
from metasrv.sdk.names import TableName
from metasrv.sdk.tables import Indexes, indexes_path
from tests.sim.clients import End, Session, pursued
from tests.sim.oracle import Written
from tests.sim.shaped import COPY, SPARSE, TOKEN, Column, Element, Index, Shaped, Way, text_of

THINK_MS = 2_500
CANCEL_MS = (1, 20, 200, 4_000)
"""Until when a change is cancelled: states of a healthy one last milliseconds."""
CANCELLED = 0.3
COLUMNS_MAX = 4
INDEXES_MAX = 3
ASK_MS = 3_000


def shaped_spec(name: str, regions: int) -> dict[str, Any]:
    return {
        "name": name,
        "columns": [
            {"name": "id", "type": "int64", "nullable": False},
            {"name": TOKEN, "type": "string"},
            {"name": COPY, "type": "string"},
            {"name": SPARSE, "type": "int64"},
        ],
        "primary_key": ["id"],
        "partition": {"by": "hash", "columns": ["id"], "count": regions},
    }


@dataclass(frozen=True)
class Wish:
    """What is asked for."""

    method: str
    path: str
    body: object = None


@dataclass
class Plan:
    """What of the model one change moves."""

    operations: list[dict[str, Any]] = field(default_factory=list)
    comes: list[Way] = field(default_factory=list)
    goes: list[Way] = field(default_factory=list)
    sets: list[Written] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    """Names of columns that it says something of."""

    def settle(self, now: float, *, done: bool) -> None:
        for way in (*self.comes, *self.goes):
            way.refused = not done
            if done:
                way.ended = now
            else:
                way.over = now
        for one in self.sets:
            one.refused = not done
            if done:
                one.ended = now


@dataclass
class Alterer:
    """Makes one change at a time, until it is answered for good."""

    session: Session
    table: Shaped
    changes: int = 0
    names: int = 0

    def __post_init__(self) -> None:
        self.indexes = Indexes(self.session.service)

    async def run(self, changes: int) -> None:
        while self.changes < changes:
            await self.session.think(THINK_MS)
            await self._change()

    async def index(self, *columns: str, unique: bool = False) -> None:
        """Makes one."""
        name = self._name("i")
        way = Way(self.session.now)
        self.table.indexes[name] = Index(name, way, columns=columns, unique=unique)
        plan = Plan(comes=[way])
        body = {"name": name, "columns": list(columns), "unique": unique}
        if not await self._pursued(Wish("POST", indexes_path(self.table.name), body), plan):
            self.session.count("an index was not made")

    async def judge(self) -> None:
        """At the end: the table has the elements of the model, and they are public."""
        body = await self.session.tables.get_by_id(self.table.table_id)
        found = {column.name for column in body.columns if column.state == "public"}
        right = {"id", TOKEN, COPY, *self._standing(self.table.columns.values())}
        if found != right or len(body.columns) != len(right):
            self.session.wrong(f"{self.table.name} has {body.columns}, right: {sorted(right)}")
        indexes = await self.indexes.list(self.table.name)
        found = {index.name for index in indexes if index.state == "public"}
        right = set(self._standing(self.table.indexes.values()))
        if found != right or len(indexes) != len(right):
            self.session.wrong(f"{self.table.name} has {indexes}, right: {sorted(right)}")

    # ---- what is changed

    async def _change(self) -> None:
        drawn = self.session.random.random()
        if drawn < 0.12:
            await self._make_index()
        elif drawn < 0.24:
            await self._drop_index()
        elif drawn < 0.55:
            await self._alter([self._add_column])
        elif drawn < 0.7:
            await self._alter([self._drop_column])
        elif drawn < 0.8:
            await self._alter([self._set_default])
        else:
            draws = [self._add_column, self._add_column, self._drop_column, self._set_default]
            await self._alter(self.session.random.sample(draws, 3))

    async def _make_index(self) -> None:
        if len(list(self._standing(self.table.indexes.values()))) >= INDEXES_MAX:
            return await self._drop_index()
        random = self.session.random
        names = [TOKEN, *self._standing(self.table.columns.values())]
        if SPARSE in names and self.table.regions == 1 and random.random() < 0.5:
            return await self.index(SPARSE, unique=True)
        await self.index(*random.sample(names, random.randint(1, min(2, len(names)))))

    async def _drop_index(self) -> None:
        names = list(self._standing(self.table.indexes.values()))
        if not names:
            return
        name, way = self.session.random.choice(names), Way(self.session.now)
        self.table.indexes[name].goes.append(way)
        path = f"{indexes_path(self.table.name)}/{name}"
        await self._pursued(Wish("DELETE", path), Plan(goes=[way]))

    async def _alter(self, draws: Sequence[Callable[[Plan], None]]) -> None:
        plan = Plan()
        for draw in draws:
            draw(plan)
        if not plan.operations:
            return
        path = f"{TableName.parse(self.table.name).path}/alter"
        await self._pursued(Wish("POST", path, {"operations": plan.operations}), plan)

    def _add_column(self, plan: Plan) -> None:
        if len(list(self._standing(self.table.columns.values()))) >= COLUMNS_MAX:
            return self._drop_column(plan)
        random = self.session.random
        name, way = self._name("c"), Way(self.session.now)
        required = random.random() < 0.4
        default = random.randrange(100, 200) if required or random.random() < 0.5 else None
        column = {"name": name, "type": "int64", "nullable": not required, "default": default}
        self.table.add(Column(name, way, origin=default, required=required))
        plan.operations.append({"op": "add_column", "column": column})
        plan.comes.append(way)
        plan.taken.add(name)

    def _drop_column(self, plan: Plan) -> None:
        """Indexes over it go with it."""
        names = [n for n in self._standing(self.table.columns.values()) if n not in plan.taken]
        if not names:
            return
        name = self.session.random.choice(names)
        over = [one for one in self.table.indexes.values() if name in one.columns]
        standing = set(self._standing(over))
        for element in (self.table.columns[name], *(o for o in over if o.name in standing)):
            way = Way(self.session.now)
            element.goes.append(way)
            plan.goes.append(way)
        plan.operations.append({"op": "drop_column", "name": name})
        plan.taken.add(name)

    def _set_default(self, plan: Plan) -> None:
        names = [n for n in self._standing(self.table.columns.values()) if n not in plan.taken]
        if not names:
            return
        column = self.table.columns[self.session.random.choice(names)]
        default = self.session.random.randrange(200, 300)
        plan.sets.append(column.defaults.begin(0, text_of(default), self.session.now))
        plan.operations.append({"op": "set_default", "name": column.name, "default": default})
        plan.taken.add(column.name)

    # ---- how

    async def _pursued(self, wish: Wish, plan: Plan) -> bool:
        """Whether it was done."""
        self.changes += 1
        session = self.session
        cancels = session.random.random() < CANCELLED

        async def pursue(key: str) -> object:
            nonlocal cancels
            if cancels:
                cancels = False
                await self._cancelled(wish, key)
            service = session.service
            return await service.change(wish.method, wish.path, wish.body, idempotency_key=key)

        end: End[object] = await pursued(session, pursue)
        plan.settle(session.now, done=end.error is None)
        return end.error is None

    async def _cancelled(self, wish: Wish, key: str) -> None:
        """As far as it still can be."""
        headers = {"idempotency-key": key, "prefer": "wait=0"}
        with suppress(MetaError):
            answer = await self.session.http.request(
                wish.method, wish.path, json=wish.body, headers=headers, deadline_ms=ASK_MS
            )
            if answer.status == 202:
                await self.session.think(self.session.random.choice(CANCEL_MS) + 1)
                await self.session.procedures.cancel(answer.body(ProcedureBody).id)
                self.session.count("a change that was cancelled")

    def _standing(self, elements: Iterable[Element]) -> Iterator[str]:
        now = self.session.now
        return (one.name for one in elements if one.is_there(now, now))

    def _name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"
