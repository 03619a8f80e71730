"""Clients that change the catalog: one table's steward, a builder, and those who ask and forget."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from metasrv_base.errors import MetaError, NotFound, Unavailable, Unknown
from metasrv_base.wire.api.procedures import FailoverRequest, ProcedureBody
from metasrv_base.wire.api.tables import TableBody
from tests.sim.clients.client import End, Session, pursued

THINK_MS = 3_000
TABLES = "/v1/catalogs/main/schemas/public/tables"
FORGET_MS = 2_500


def spec(name: str, regions: int, replicas: int = 1) -> dict[str, Any]:
    return {
        **({"replicas": replicas} if replicas > 1 else {}),
        "name": name,
        "columns": [
            {"name": "id", "type": "int64", "nullable": False},
            {"name": "v", "type": "string"},
        ],
        "primary_key": ["id"],
        "partition": {"by": "hash", "columns": ["id"], "count": regions},
    }


@dataclass
class Known:
    """A table as its owner knows it: nobody else changes it."""

    name: str
    table_id: int = 0
    options: dict[str, str] = field(default_factory=dict)
    columns: int = 2
    is_dropped: bool = False

    def wrong(self, body: TableBody) -> str | None:
        found = (body.name, dict(body.options), len(body.columns), body.dropped_at is not None)
        right = (self.name, self.options, self.columns, self.is_dropped)
        return None if found == right else f"table {self.table_id} is {found}, right: {right}"


@dataclass
class Owner:
    """Changes tables of its own, one change at a time, each until it is answered for good."""

    session: Session
    known: dict[int, Known] = field(default_factory=dict)
    changes: int = 0
    has_force: bool = False
    replicas: int = 1
    """The copies of each region of the tables that it makes."""

    async def create(self, name: str, regions: int) -> Known | None:
        tables = self.session.tables
        self.changes += 1
        body = spec(name, regions, self.replicas)
        end = await pursued(self.session, lambda key: tables.create(body, idempotency_key=key))
        if end.value is None:
            return None
        known = self.known[end.value.id] = Known(name, end.value.id)
        return known

    async def alter(self, known: Known, share_of_options: float = 0.6) -> None:
        """A setting or a column."""
        tables, number = self.session.tables, self.changes
        if self.session.random.random() < share_of_options:
            operation: dict[str, Any] = {"op": "set_options", "options": {"app.n": str(number)}}
        else:
            column = {"name": f"c{number}", "type": "int64"}
            operation = {"op": "add_column", "column": column}
        end = await self._change(
            lambda key: tables.alter(known.name, [operation], idempotency_key=key)
        )
        if end.error is None and operation["op"] == "set_options":
            known.options["app.n"] = str(number)
        elif end.error is None:
            known.columns += 1

    async def rename(self, known: Known, name: str) -> None:
        tables = self.session.tables
        end = await self._change(lambda key: tables.rename(known.name, name, idempotency_key=key))
        if end.error is None:
            known.name = name

    async def drop(self, known: Known) -> None:
        tables = self.session.tables
        end = await self._change(lambda key: tables.drop(known.name, idempotency_key=key))
        known.is_dropped = known.is_dropped or end.error is None

    async def undrop(self, known: Known) -> None:
        tables, table_id = self.session.tables, known.table_id
        end = await self._change(
            lambda key: tables.undrop(known.name, table_id, idempotency_key=key)
        )
        known.is_dropped = known.is_dropped and end.error is not None

    async def truncate(self, known: Known) -> None:
        session = self.session
        written = session.oracle.rows(known.table_id).begin_truncate(session.now)
        tables = session.tables
        end = await self._change(lambda key: tables.truncate(known.name, idempotency_key=key))
        if end.error is None:
            written.ended = session.now
        else:
            written.refused = True

    async def judge(self) -> None:
        """At the end: what was acknowledged stands, and nothing else."""
        for known in self.known.values():
            try:
                wrong = known.wrong(await self.session.tables.get_by_id(known.table_id))
            except MetaError as error:
                wrong = f"table {known.table_id} of {self.session.name}: {error}"
            if wrong is not None:
                self.session.wrong(wrong)

    async def _change(self, ask: Any) -> End[Any]:
        self.changes += 1
        return await pursued(self.session, ask)


async def steward(owner: Owner, known: Known, changes: int) -> None:
    """Alters a table that others write to."""
    random = owner.session.random
    for _ in range(changes):
        await owner.session.think(2 * THINK_MS)
        drawn = random.random()
        if drawn < 0.3:
            await owner.alter(known)
        elif drawn < 0.5:
            await owner.truncate(known)
        elif drawn < 0.65:
            await owner.rename(known, f"{known.name}x")
        elif drawn < 0.8:
            await owner.drop(known)
            await owner.session.think(THINK_MS)
            await owner.undrop(known)
        else:
            await fail_over(owner, known)
        if known.is_dropped:
            await owner.undrop(known)


async def fail_over(owner: Owner, known: Known) -> None:
    """One region leaves its leader, by force or when its lease is over."""
    session = owner.session
    try:
        route = await session.tables.route(known.name)
    except MetaError:
        return
    region = session.random.choice(list(route.regions))
    force = owner.has_force and session.random.random() < 0.7
    request = FailoverRequest(region_ids=(region.region_id,), reason="drill", force=force)
    owner.changes += 1
    await pursued(session, lambda key: session.failovers.start(request, idempotency_key=key))


async def builder(owner: Owner, changes: int) -> None:
    """Makes tables, changes them and drops them."""
    random, session = owner.session.random, owner.session
    while owner.changes < changes:
        await session.think(THINK_MS)
        known = random.choice(list(owner.known.values())) if owner.known else None
        drawn = random.random()
        if known is None or drawn < 0.3:
            await owner.create(f"{session.name.replace('-', '_')}_{owner.changes}", 2)
        elif known.is_dropped:
            await owner.undrop(known)
        elif drawn < 0.6:
            await owner.alter(known)
        elif drawn < 0.75:
            await owner.rename(known, f"{session.name.replace('-', '_')}_r{owner.changes}")
        else:
            await owner.drop(known)


@dataclass
class Forgetter:
    """Asks once, without a key, and never again: nothing but the system itself finishes what it
    began. Names are its own, so that it can be told what became of each."""

    session: Session
    accepted: dict[str, str] = field(default_factory=dict)
    """Name -> the procedure that was promised."""
    done: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    changes: int = 0
    replicas: int = 1

    async def run(self, changes: int) -> None:
        for _ in range(changes):
            await self.session.think(THINK_MS)
            self.changes += 1
            await self._create(f"{self.session.name.replace('-', '_')}_{self.changes}")

    async def _create(self, name: str) -> None:
        wait = "wait=1" if self.session.random.random() < 0.5 else "wait=0"
        try:
            answer = await self.session.http.request(
                "POST",
                TABLES,
                json=spec(name, 2, self.replicas),
                headers={"prefer": wait},
                deadline_ms=FORGET_MS,
            )
        except (Unknown, Unavailable) as error:
            if isinstance(error, Unavailable):
                self.refused.add(name)
            return
        except MetaError:
            self.refused.add(name)
            return
        if answer.status == 202:
            self.accepted[name] = answer.body(ProcedureBody).id
        else:
            self.done.add(name)

    async def judge(self) -> None:
        """At the end: every promise was kept, and nothing that was refused is there."""
        names = await self._names()
        for name in sorted(self.done - names.keys()):
            self.session.wrong(f"table {name} was acknowledged, and is not there")
        for name in sorted(self.refused & names.keys()):
            self.session.wrong(f"table {name} was refused, and is there")
        for name, procedure in self.accepted.items():
            await self._judge_promise(name, procedure, names)

    async def _judge_promise(self, name: str, procedure: str, names: Mapping[str, int]) -> None:
        try:
            body = await self.session.procedures.get(procedure)
        except NotFound:
            self.session.wrong(f"procedure {procedure} was accepted, and is not known")
            return
        except MetaError as error:
            self.session.wrong(f"procedure {procedure} cannot be read: {error}")
            return
        if not body.done:
            self.session.wrong(f"procedure {procedure} ({body.kind}) is {body.state} at the end")
        elif (body.state == "succeeded") != (name in names):
            stands = "stands" if name in names else "does not stand"
            self.session.wrong(f"procedure {procedure} {body.state}, and table {name} {stands}")

    async def _names(self) -> dict[str, int]:
        prefix = self.session.name.replace("-", "_")
        found = await self.session.tables.list(prefix=prefix)
        return {table.name: table.id for table in found}
