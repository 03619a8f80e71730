"""A client that changes a table under its users: columns, indexes and constraints come and go,
several at once, and some changes are steered on the way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from metasrv.sdk.control.names import TableName
from metasrv.sdk.control.tables import Indexes, indexes_path
from metasrv_base.elements.states import ElementState
from metasrv_base.wire.api.tables import IndexBody
from tests.sim.clients.client import End, Session, pursued
from tests.sim.clients.elements import Way, standing
from tests.sim.clients.operations import Operations, Plan
from tests.sim.clients.shaped import COPY, SPARSE, TOKEN, Index, Shaped
from tests.sim.clients.steering import GRACE_S, Attempt, Steering, kept

THINK_MS = 2_500
STEERED = 0.4
KEPT = 0.4
"""The chance of a drop to have a grace time."""
INDEXES_MAX = 3
DROPS_MAX = 20


def shaped_spec(name: str, regions: int, replicas: int = 1) -> dict[str, Any]:
    return {
        **({"replicas": replicas} if replicas > 1 else {}),
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


@dataclass
class Alterer:
    """Makes one change at a time, until it is answered for good."""

    session: Session
    table: Shaped
    steered: float = STEERED
    """The chance of a change to be steered on its way."""
    changes: int = 0
    names: int = 0
    has_met_twins: bool = False
    """Whether a unique index was asked for over rows that share values."""

    def __post_init__(self) -> None:
        self.indexes = Indexes(self.session.service)

    async def run(self, changes: int) -> None:
        while self.changes < changes:
            await self.session.think(THINK_MS)
            if self._is_to_meet_twins():
                self.has_met_twins = True
                await self.index(SPARSE, unique=True)
            else:
                await self.change()

    async def index(self, *columns: str, unique: bool = False) -> None:
        """Makes one."""
        name = self._name("i")
        way = Way(self.session.now)
        self.table.indexes[name] = Index(name, way, columns=columns, unique=unique)
        plan = Plan(comes=[way])
        body = {"name": name, "columns": list(columns), "unique": unique}
        attempt = Attempt("POST", indexes_path(self.table.name), body)
        if unique and self.session.random.random() < 0.5:
            body["not_valid"] = True
            await self._index_not_valid(name, attempt, plan)
        elif not await self._pursued(attempt, plan):
            self.session.count("an index was not made")

    async def column(self, default: int) -> None:
        """Adds one that is required."""
        await self._alter([lambda plan: self._operations().add(plan, True, default)])

    async def _index_not_valid(self, name: str, attempt: Attempt, plan: Plan) -> None:
        """Write-only, if values stand twice; then it is validated, or goes."""
        is_public = False
        if await self._pursued(attempt, Plan()):
            is_public = await self._is_public(name)
            if not is_public:
                self.session.count("an index that was not valid")
                path = f"{attempt.path}/{name}"
                is_public = await self._pursued(Attempt("POST", f"{path}/validate"), Plan())
                if not is_public:
                    await self._gone(Attempt("DELETE", path))
        plan.settle(self.session.now, done=is_public)

    async def _is_public(self, name: str) -> bool:
        async def look(_: str) -> IndexBody:
            return await self.indexes.get(self.table.name, name)

        found = await pursued(self.session, look)
        return found.value is not None and found.value.state is ElementState.PUBLIC

    async def _gone(self, attempt: Attempt) -> None:
        """However often that takes."""
        for _ in range(DROPS_MAX):
            if await self._pursued(attempt, Plan()):
                return

    async def judge(self) -> None:
        """At the end: the table has the elements of the model, and they are public."""
        body = await self.session.tables.get_by_id(self.table.table_id)
        found = {column.name for column in body.columns if column.state == "public"}
        now = self.session.now
        right = {"id", TOKEN, COPY, *standing(self.table.columns.values(), now)}
        if found != right or len(body.columns) != len(right):
            self.session.wrong(f"{self.table.name} has {body.columns}, right: {sorted(right)}")
        indexes = await self.indexes.list(self.table.name)
        found = {index.name for index in indexes if index.state == "public"}
        right = set(standing(self.table.indexes.values(), now))
        if found != right or len(indexes) != len(right):
            self.session.wrong(f"{self.table.name} has {indexes}, right: {sorted(right)}")
        rules = self.table.rules.standing(now)
        found, right = {one.name for one in body.constraints}, {r.name for r in rules if r.is_named}
        if found != right:
            self.session.wrong(f"{self.table.name} has {found} of constraints, right: {right}")
        found = {column.name for column in body.columns if not column.nullable} - {"id"}
        right = {rule.column for rule in rules if not rule.is_named}
        if found != right:
            self.session.wrong(f"{self.table.name} has {found} never null, right: {right}")
        if not await self._checked():
            self.session.wrong(f"{self.table.name} cannot be checked")

    # ---- what is changed

    def _is_to_meet_twins(self) -> bool:
        """Once, when rows have come."""
        table = self.table
        is_due = table.is_crowded and not self.has_met_twins and self.changes > 1
        return is_due and SPARSE in standing(table.columns.values(), self.session.now)

    async def change(self) -> None:
        drawn, say = self.session.random.random(), self._operations()
        if drawn < 0.12:
            await self._make_index()
        elif drawn < 0.24:
            await self._drop_index()
        elif drawn < 0.4:
            await self._alter([say.add_column])
        elif drawn < 0.46:
            if await self._alter([say.alter_type]):
                self.session.count("a column of another type")
        elif drawn < 0.56:
            await self._alter([say.drop_column])
        elif drawn < 0.62:
            await self._alter([say.set_default])
        elif drawn < 0.79:
            await self._alter([self.session.random.choice(say.of_rules())])
        elif drawn < 0.83:
            await self._checked()
        else:
            draws = [say.add_column, say.add_column, say.drop_column, say.set_default]
            await self._alter(self.session.random.sample([*draws, *say.of_rules()], 3))

    def _operations(self) -> Operations:
        return Operations(self.table, self.session, self._name)

    async def _make_index(self) -> None:
        now = self.session.now
        if len(standing(self.table.indexes.values(), now)) >= INDEXES_MAX:
            return await self._drop_index()
        random = self.session.random
        names = [TOKEN, *standing(self.table.columns.values(), now)]
        if SPARSE in names and self.table.regions == 1 and random.random() < 0.5:
            return await self.index(SPARSE, unique=True)
        await self.index(*random.sample(names, random.randint(1, min(2, len(names)))))

    async def _drop_index(self) -> None:
        names = standing(self.table.indexes.values(), self.session.now)
        if not names:
            return
        name, way = self.session.random.choice(names), Way(self.session.now)
        self.table.indexes[name].goes.append(way)
        path = f"{indexes_path(self.table.name)}/{name}"
        await self._pursued(Attempt("DELETE", path, undrop=f"{path}/undrop"), Plan(goes=[way]))

    async def _alter(self, draws: Sequence[Callable[[Plan], None]]) -> bool:
        """Whether there was something to do, and it was done."""
        plan = Plan()
        for draw in draws:
            draw(plan)
        if not plan.operations:
            return False
        path = TableName.parse(self.table.name).path
        undrop = None if plan.dropped is None else f"{path}/columns/{plan.dropped}/undrop"
        body = {"operations": plan.operations}
        return await self._pursued(Attempt("POST", f"{path}/alter", body, undrop), plan)

    async def _checked(self) -> bool:
        """Whether it could be; whenever that is, nothing is wrong."""
        self.changes += 1
        tables, name = self.session.tables, self.table.name
        end = await pursued(self.session, lambda key: tables.check(name, idempotency_key=key))
        if end.value is not None:
            self.session.count("a table that was checked")
            if not end.value.clean:
                self.session.wrong(f"check of {name}: {end.value.totals} {end.value.faults}")
        return end.value is not None

    # ---- how

    async def _pursued(self, attempt: Attempt, plan: Plan) -> bool:
        """Whether it was done."""
        self.changes += 1
        session, random = self.session, self.session.random
        if attempt.undrop is not None and random.random() < KEPT:
            attempt = kept(attempt, random.randint(*GRACE_S))
        is_steered = random.random() < self.steered
        steering: Steering | None = None

        async def pursue(key: str) -> object:
            nonlocal steering
            if steering is None and is_steered:
                steering = Steering(session, attempt, key)
                await steering.begin()
            elif steering is not None:
                await steering.go_on()
            service = session.service
            return await service.change(
                attempt.method, attempt.path, attempt.body, idempotency_key=key
            )

        end: End[object] = await pursued(session, pursue)
        plan.settle(session.now, done=end.error is None)
        if steering is not None and steering.is_cancelled and end.error is None:
            session.wrong(f"{attempt.method} {attempt.path} was cancelled, and was done")
        return end.error is None

    def _name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"
