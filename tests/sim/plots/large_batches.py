"""Batches that one transaction cannot hold, and the same commands one by one, while leaders die
between their keys, the log is cut below them, and watchers follow."""

from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

from keys.commit import committer
from keys.commit.copying import uncopied_of
from keys.commit.staging import StagingSizes
from keys.model.cluster import LeaderKey
from keys.model.staging.parts import LargeUpdate, LargeUpdateKey
from keys.store.kv import Watched
from keys.value import decode
from metasrv.leadership import leadership
from metasrv.sdk.control.batches import Batches
from metasrv.sdk.control.namespaces import Catalogs, Schemas
from metasrv_base.errors import MetaError
from metasrv_base.wire.api.tables import SchemaBody
from procedures.context import Ports
from procedures.ports import TransactionLimits
from tests.sim.clients.client import Session, pursued
from tests.sim.clients.ddl import spec
from tests.sim.cluster.cuts import CUT
from tests.sim.cluster.faults import leader_dies, leader_dies_writing, leader_stands_still
from tests.sim.cluster.world import World
from tests.sim.length import SHORT, Life
from tests.sim.loop import WORLD
from tests.sim.planted.mistakes import Bugs
from tests.sim.scenario import Plot

LARGE_BATCHES = replace(
    SHORT, name="large-batches", users=1, scans=0, changes=2, owned=2, faults_ms=20_000
)
BATCHES = 7
COMMANDS = (5, 13)
"""The least and the most of one batch."""
NAMES = 9
"""Names of tables in a schema: few, so that each is freed and taken again."""
THINK_MS = 2_500
LOOK_MS = 400
CUT_MS = 12_000
TRIES_MAX = 40
"""Tries of one command alone: its node may be dead until the peace."""
STRIKES = 3
"""Leaders that fall while the keys of a large version are being written."""
STRIKE_MS = 40
FAULTS = (leader_dies, leader_dies_writing, leader_stands_still)
TOGETHER, SINGLY = "together", "singly"
"""Schemas: the batches change one, and the same commands one by one the other."""
FLIPPED = "a version too large for one transaction"
LEFT = "a leader that left keys of a large version to the next"
REFUSED = "a batch that was refused"
LOOKED = "a list of tables beside large batches"

Command = dict[str, dict[str, Any]]
_PORTS = leadership._ports


def small(random: Random) -> Bugs:
    """Limits by which every batch is large; that of a record for some lives only."""
    limits = TransactionLimits(operations=3)
    if random.random() < 0.5:
        limits = replace(limits, record_bytes=1)
    sizes = StagingSizes(random.choice([600, 4_000]), random.randint(3, 9))

    def ports(*given: Any) -> Ports:
        return replace(_PORTS(*given), limits=limits)

    return Bugs(patches=((leadership, "_ports", ports), (committer, "StagingSizes", lambda: sizes)))


@dataclass
class Batcher:
    """Sends one batch after the other, and then each of its commands alone, in another schema."""

    session: Session
    tables: dict[str, str] = field(default_factory=dict)
    """Name -> comment, as the commands leave them one by one."""
    allowed: list[frozenset[str]] = field(default_factory=lambda: [frozenset()])
    """Names that a reader may find: before or after any batch."""
    done: int = 0
    is_over: bool = False

    def __post_init__(self) -> None:
        self.batches = Batches(self.session.service)
        self.random = self.session.random

    async def prepare(self) -> None:
        for name in (TOGETHER, SINGLY):
            await pursued(self.session, partial(self._create_schema, name))

    async def _create_schema(self, name: str, key: str) -> SchemaBody:
        return await Schemas(self.session.service).create(name, idempotency_key=key)

    async def run(self) -> None:
        for number in range(BATCHES):
            await self.session.think(THINK_MS)
            await self._batch(number)
        self.is_over = True

    async def _batch(self, number: int) -> None:
        after, commands = dict(self.tables), list[Command]()
        for place in range(self.random.randint(*COMMANDS)):
            commands.append(self._drawn(after, f"{number}.{place}"))
        self.allowed.append(frozenset(after))
        sent = [in_schema(command, TOGETHER) for command in commands]
        end = await pursued(self.session, lambda key: self.batches.run(sent, idempotency_key=key))
        if end.value is None:
            self.session.count(REFUSED)
            self.allowed.pop()
            return
        if not all(end.value.applied):
            self.session.wrong(f"batch: {end.value.applied} of {sent}")
        self.done += 1
        self.tables = after
        for command in commands:
            await self._alone(command)

    def _drawn(self, tables: dict[str, str], text: str) -> Command:
        """A command that can be, by the tables that those before it leave; it changes *tables*."""
        random, free = self.random, [name for name in _NAMES if name not in tables]
        drawn, some = random.random(), sorted(tables)
        if some and drawn < 0.2:
            name = random.choice(some)
            del tables[name]
            return {"drop_table": {"table": name}}
        if some and free and drawn < 0.45:
            name, new = random.choice(some), random.choice(free)
            tables[new] = tables.pop(name)
            return {"rename_table": {"table": name, "new_name": new}}
        if some and (drawn < 0.6 or not free):
            name = random.choice(some)
            tables[name] = text
            operations = [{"op": "set_options", "options": {"comment": text}}]
            return {"alter_table": {"table": name, "operations": operations}}
        name = random.choice(free)
        tables[name] = ""
        return {"create_table": {"table": spec(name, random.choice([1, 2]))}}

    async def _alone(self, command: Command) -> None:
        """Until it is done: a node that it needs may be dead for a while."""
        for _ in range(TRIES_MAX):
            end = await pursued(self.session, lambda key: self._single(command, key))
            if end.error is None:
                return
            await self.session.think(THINK_MS)
        self.session.wrong(f"batch: alone {command} ended {end.error}")

    async def _single(self, command: Command, key: str) -> None:
        ((op, said),) = command.items()
        tables, where = self.session.tables, f"{SINGLY}.{said['table']}"
        match op:
            case "create_table":
                await tables.create(said["table"], SINGLY, idempotency_key=key)
            case "drop_table":
                await tables.drop(where, idempotency_key=key)
            case "rename_table":
                await tables.rename(where, said["new_name"], idempotency_key=key)
            case _:
                await tables.alter(where, said["operations"], idempotency_key=key)

    async def look(self) -> None:
        """A reader: each list of the tables is of a moment before or after a batch."""
        session = self.session
        while not self.is_over:
            await session.clock.sleep_ms(LOOK_MS)
            try:
                names = await self._names(TOGETHER)
            except MetaError:
                continue
            session.count(LOOKED)
            if frozenset(names) not in self.allowed:
                session.wrong(f"batch: a reader found {sorted(names)}, a part of a batch")

    async def _names(self, schema: str) -> list[str]:
        return [table.name for table in await self.session.tables.list(schema)]

    async def judge(self) -> None:
        """Both schemas hold the same tables, and those of the model."""
        for schema in (TOGETHER, SINGLY):
            found = {
                name: (await self.session.tables.get(f"{schema}.{name}")).options.get("comment", "")
                for name in await self._names(schema)
            }
            if found != self.tables:
                self.session.wrong(f"batch: {schema} holds {found}, right: {self.tables}")


_NAMES = tuple(f"t{number}" for number in range(NAMES))


def in_schema(command: Command, schema: str) -> Command:
    ((op, said),) = command.items()
    return {op: {"catalog": "main", "schema": schema, **said}}


class LargeBatches(Plot):
    def __init__(self, world: World, life: Life) -> None:
        super().__init__(world, life)
        self.random = Random(f"large batches {life.seed}")
        self.batcher = Batcher(world.session("batcher"))
        self.strikes = STRIKES
        self.is_calm = False
        """Whether leaders fall no more."""
        world.ghost.listeners.append(self._written)

    async def play(self) -> None:
        with small(self.random).planted():
            await super().play()

    async def _prepared(self) -> bool:
        if not await super()._prepared():
            return False
        await self.batcher.prepare()
        return True

    def _actors(self) -> "list[tuple[str, Coroutine[Any, Any, None]]]":
        """The batcher first: peace is made when it has done its work."""
        world, batcher = self.world, self.batcher
        return [
            ("batcher", batcher.run()),
            *super()._actors(),
            ("lister", batcher.look()),
            ("archivist", self._cut(world.session("archivist"))),
        ]

    async def _cut(self, session: Session) -> None:
        """Another snapshot, and no history before it."""
        catalogs = Catalogs(session.service)
        while not self.batcher.is_over:
            await session.think(CUT_MS)
            try:
                made = await catalogs.snapshot(drop_history=True)
            except MetaError as error:
                session.count(f"a cut refused: {error.code}")
            else:
                self.world.weather.sometimes[CUT] += made.deleted

    def _written(self, entry: Watched) -> None:
        """Leaders fall among the keys of large versions; the next one finishes them."""
        start, end = LargeUpdateKey.under()
        sometimes = self.world.weather.sometimes
        for event in entry.events:
            if event.key == bytes(LeaderKey()) and event.value is not None:
                sometimes[LEFT] += self._is_copying()
            if not start <= event.key < end or event.value is None:
                continue
            large = decode(LargeUpdate, event.value, key=event.key.decode())
            if large.copied:
                continue
            sometimes[FLIPPED] += 1
            if not self.is_calm and self.strikes and self.random.random() < 0.5:
                self.strikes -= 1
                self.world.loop.spawn(WORLD, self._strike())

    def _is_copying(self) -> bool:
        return uncopied_of(self.world.kv._store.scan(*LargeUpdateKey.under())) is not None

    async def _strike(self) -> None:
        await self.world.sleep_ms(self.random.uniform(0, STRIKE_MS))
        if any(server.leads for server in self.world.servers):
            fault = self.random.choice(FAULTS)
            self.faults.append(f"{fault.__name__} among the keys of a version")
            await self._happens(fault)

    def _make_peace(self) -> None:
        self.is_calm = True
        super()._make_peace()

    async def _judge(self) -> None:
        await super()._judge()
        await self.batcher.judge()
        if self._is_copying():
            self.world.wrong("batch: keys of a version are left at the end")
