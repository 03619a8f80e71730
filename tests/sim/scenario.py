"""One seed: calm, then faults among the clients' work, then peace, and what everybody finds.

outcome = live(Life(17))
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keys.model.records import ProcedureKey, ProcedureRecord
from keys.value import decode
from metasrv.check.collect import check
from tests.sim.checks.catalog_watcher import CatalogWatcher
from tests.sim.checks.cluster_inspector import SimEyes
from tests.sim.checks.invariants import look_at_leaders
from tests.sim.checks.orphan_invariants import keep_tidy
from tests.sim.clients.changes import STEERED, Alterer, shaped_spec
from tests.sim.clients.client import Session, pursued
from tests.sim.clients.ddl import Forgetter, Known, Owner, builder, steward
from tests.sim.clients.frontend_line import Line
from tests.sim.clients.index_scans import Scanner
from tests.sim.clients.shaped import SPARSE, TOKEN, Shaped
from tests.sim.clients.users import User, read_by_indexes, read_whole
from tests.sim.clients.writers import Writer, read_all
from tests.sim.cluster.faults import FAULTS, Fault
from tests.sim.cluster.frontends import Frontend
from tests.sim.cluster.nodes import Datanode
from tests.sim.cluster.servers import Metasrv, begun_again
from tests.sim.cluster.world import World, quiet, seeded_ids, uncollected
from tests.sim.length import Life
from tests.sim.loop import WORLD, SimLoop, run
from tests.sim.planted.mistakes import Bugs

LOOK_MS = 400
START_MS_MAX = 60_000
SETTLE_MS_MAX = 300_000
"""In which all is over once the faults are: leases, elections and retries end long before."""
QUIET_MS = 6_000
TABLES = 1


@dataclass(frozen=True)
class Outcome:
    """The result of a seed."""

    life: Life
    digest: str
    violations: tuple[str, ...]
    sometimes: Counter[str]
    operations: int
    changes: int
    """Changes of the table that changes its shape."""
    faults: tuple[str, ...]
    virtual_s: float
    steps: int
    missed: frozenset[str] = frozenset()
    """Seams of planted bugs that the code did not come to."""


def live(
    life: Life,
    bugs: Bugs | None = None,
    until: str | None = None,
    plot: "Callable[[World, Life], Plot] | None" = None,
) -> Outcome:
    """Raises nothing of the world's: what went wrong in it is in the outcome.

    *until*: the world ends as soon as something goes wrong that is told with these words.
    """
    bugs, reached = bugs or Bugs(), set[str]()
    planted = bugs.watched(reached)
    plots: list[Plot] = []

    async def main(loop: SimLoop) -> None:
        plots.append((plot or Plot)(World(loop, life, planted, until), life))
        playing = loop.spawn(WORLD, plots[0].play())
        await asyncio.wait([playing, plots[0].world.found], return_when=asyncio.FIRST_COMPLETED)
        if playing.done():
            playing.result()

    def tell(event: dict[str, Any], raised: str) -> None:
        plots[0].world.logged(event, raised)

    with quiet(tell), planted.planted(), seeded_ids(life.seed), uncollected():
        try:
            run(main, life.seed)
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever ends a world
            plots[0].world.wrong(f"ended by {error!r}")
    return replace(plots[0].outcome(), missed=bugs.seams - reached)


class Plot:
    look_ms = LOOK_MS
    drawn_faults: Sequence[Fault] = FAULTS
    regions = 2
    """Regions of a table of the SDK's."""
    removes_orphans = True
    """Whether folders that nobody needs go within seconds."""
    shaped_replicas = 1
    """Copies of each region of the table that changes its shape."""

    def __init__(self, world: World, life: Life) -> None:
        self.world = world
        self.life = life
        self.length = life.length
        self.faults: list[str] = []
        self.owners: list[Owner] = []
        self.forgetters: list[Forgetter] = []
        self.alterers: list[Alterer] = []
        self.names = [f"t{number}" for number in range(TABLES)]
        self.watcher = CatalogWatcher(world.session("watcher"), world.ghost)

    async def play(self) -> None:
        world = self.world
        for process in self._processes():
            process.start()
        watching = world.loop.spawn(WORLD, self._watch())
        following = world.loop.spawn("watcher", self.watcher.run())
        if await self._prepared():
            storms = world.loop.spawn(WORLD, self._trouble())
            work = [world.loop.spawn(name, actor) for name, actor in self._actors()]
            for task in work[: self.length.writers + self.length.users]:
                await task
            await storms
            self._make_peace()
            if await self._over("clients", lambda: all(task.done() for task in work)):
                await self._judge()
        following.cancel()
        watching.cancel()

    def outcome(self) -> Outcome:
        world = self.world
        shaping = sum(alterer.changes for alterer in self.alterers)
        changes = sum(owner.changes for owner in self.owners) + shaping
        changes += sum(forgetter.changes for forgetter in self.forgetters)
        return Outcome(
            life=self.life,
            digest=world.loop.digest(),
            violations=tuple(world.violations),
            sometimes=world.weather.sometimes + begun_again(world.servers),
            operations=world.oracle.statements + changes,
            changes=shaping,
            faults=tuple(self.faults),
            virtual_s=world.loop.time(),
            steps=world.loop.steps,
        )

    def _processes(self) -> list[Metasrv | Datanode | Frontend]:
        return [*self.world.servers, *self.world.nodes, *self.world.frontends]

    # ---- before

    async def _prepared(self) -> bool:
        """The tables that are written to stand, on nodes that are known."""
        owner = self._owner("steward-0")
        nodes = {node.name for node in self.world.nodes}
        session = owner.session

        def all_heard() -> bool:
            leader = next((server for server in self.world.servers if server.leads), None)
            term = leader.state.term if leader and leader.state else None
            return term is not None and nodes <= {view.node_id for view in term.nodes.nodes()}

        if not await self._over("start", all_heard, START_MS_MAX):
            return False
        if self.removes_orphans:
            await keep_tidy(session)
        self.known: list[Known] = []
        for name in self.names:
            known = await owner.create(name, self.regions)
            if known is None:
                session.wrong(f"{name} cannot be made")
                return False
            self.known.append(known)
        return await self._shaped()

    async def _shaped(self) -> bool:
        """The table that changes its shape, with an index over all of its rows to come."""
        session, regions = self.world.session("alterer"), self.world.random.choice([1, 2])
        is_crowded = regions == 1 and self.world.random.random() < 0.5
        body = shaped_spec("shaped", regions, self.shaped_replicas)
        end = await pursued(session, lambda key: session.tables.create(body, idempotency_key=key))
        if end.value is None:
            session.wrong("shaped cannot be made")
            return False
        shaped = Shaped(
            end.value.id, "shaped", session.oracle.rows(end.value.id), regions, is_crowded
        )
        alterer = self._alterer(session, shaped)
        alterer.steered = 0.0
        self.alterers.append(alterer)
        await alterer.index(TOKEN)
        if regions == 1 and not is_crowded:
            await alterer.index(SPARSE, unique=True)
        if not is_crowded:
            await User(self._line("first"), shaped, 0).fill()
        alterer.steered = STEERED
        return True

    def _alterer(self, session: Session, shaped: Shaped) -> Alterer:
        return Alterer(session, shaped)

    def _owner(self, name: str) -> Owner:
        self.owners.append(Owner(self.world.session(name), has_force=self.world.has_force))
        return self.owners[-1]

    def _actors(self) -> "list[tuple[str, Coroutine[Any, Any, None]]]":
        world, length = self.world, self.length
        actors: list[tuple[str, Coroutine[Any, Any, None]]] = []
        for number in range(length.writers):
            writer = Writer(world.session(f"writer-{number}"), number, self.names)
            actors.append((f"writer-{number}", writer.run(length.statements)))
        (alterer,) = self.alterers
        for number in range(length.users):
            user = User(self._line(f"user-{number}"), alterer.table, number)
            actors.append((user.session.name, self._use(user)))
        scanner = Scanner(self._line("scanner"), alterer.table)
        actors.append(("scanner", self._scan(scanner)))
        actors.append(("alterer", alterer.run(length.changes)))
        for number, known in enumerate(self.known):
            owner = self._owner(f"steward-{number + 1}")
            owner.known[known.table_id] = self.owners[0].known.pop(known.table_id)
            actors.append((owner.session.name, steward(owner, known, length.owned // 2)))
        owner = self._owner("builder")
        actors.append((owner.session.name, builder(owner, length.owned)))
        forgetter = Forgetter(world.session("forgetter"))
        self.forgetters.append(forgetter)
        actors.append((forgetter.session.name, forgetter.run(length.owned)))
        actors.append(("reader", self._read(world.session("reader"))))
        return actors

    async def _use(self, user: User) -> None:
        await user.run(self.length.statements)

    async def _scan(self, scanner: Scanner) -> None:
        await scanner.run(self.length.scans)

    def _line(self, name: str) -> Line:
        return Line(self.world.session(name), self.world.frontends)

    async def _read(self, session: Session) -> None:
        tables = {name: session.rows(name) for name in self.names}
        for _ in range(self.length.reads):
            await session.think(5_000)
            await read_all(session, tables[session.random.choice(self.names)], must=False)

    # ---- trouble

    async def _trouble(self) -> None:
        world, random = self.world, self.world.random
        world.weather.storm = world.weather.store_storm = 0.5
        world.weather.job_fails = 0.2
        world.weather.is_tried = True
        count = random.randint(self.length.faults_min, self.length.faults_max)
        starts = sorted(random.uniform(0, self.length.faults_ms) for _ in range(count))
        begun: list[Awaitable[None]] = []
        before = 0.0
        for start in starts:
            await world.sleep_ms(start - before)
            before = start
            fault = random.choice(self.drawn_faults)
            self.faults.append(fault.__name__)
            world.loop.trace("fault", fault.__name__)
            begun.append(world.loop.spawn(WORLD, self._happens(fault)))
        for one in begun:
            await one

    async def _happens(self, fault: Fault) -> None:
        weather = self.world.weather
        weather.troubles += 1
        await fault(self.world)
        weather.troubles -= 1
        self.world.loop.trace("fault is over", fault.__name__)

    def _make_peace(self) -> None:
        world = self.world
        world.loop.trace("peace")
        world.weather.clear()
        for process in self._processes():
            if not process.is_up:
                process.start()

    async def _watch(self) -> None:
        world = self.world
        while True:
            world.kv.tick()
            world.ghost.look()
            world.leases.look(world.nodes)
            world.shapes.look(world.nodes, world.frontends)
            world.known.look(world.servers)
            look_at_leaders(world.servers, world.weather.sometimes)
            self._restart_those_who_gave_up()
            await world.sleep_ms(self.look_ms)

    def _restart_those_who_gave_up(self) -> None:
        """As whatever runs the programs does; faults restart what they have killed."""
        ended: list[Datanode | Frontend] = [*self.world.nodes, *self.world.frontends]
        for process in ended:
            if process.gave_up:
                process.gave_up = False
                process.start()

    # ---- after

    async def _over(self, what: str, is_so: Any, limit_ms: int = SETTLE_MS_MAX) -> bool:
        world = self.world
        until = world.loop.time() + limit_ms / 1000
        while not is_so():
            if world.loop.time() > until:
                world.wrong(f"not over within {limit_ms} ms: {what}")
                return False
            await world.sleep_ms(LOOK_MS)
        return True

    def _no_procedure(self) -> bool:
        return any(server.leads for server in self.world.servers) and not self._records()

    def _records(self) -> list[ProcedureRecord]:
        start, end = ProcedureKey.under()
        found = self.world.kv._store.scan(start, end)
        return [decode(ProcedureRecord, item.value, key=item.key.decode()) for item in found]

    async def _judge(self) -> None:
        """All procedures end, `check` finds nothing, and rows and tables are what was promised."""
        world = self.world
        if not await self._over("procedures", self._no_procedure):
            for record in self._records():
                world.wrong(f"{record.kind} is {record.phase} at {record.step}: {record.error}")
            return
        await world.sleep_ms(QUIET_MS)  # leases, borrowed folders, reports
        await self._over("procedures, again", self._no_procedure)
        for owner in self.owners:
            await owner.judge()
        for forgetter in self.forgetters:
            await forgetter.judge()
        watcher = self.watcher
        await self._over("watcher", lambda: watcher.version == max(world.ghost.updates))
        session = world.session("judge")
        await self._judge_rows(session)
        await self._judge_shaped()
        if self.removes_orphans:
            await self._judge_folders()
        eyes = SimEyes(world.loop, world.network, world.disks, world.urls)
        checked = await check(world.kv, eyes, world.clock, deep=True)
        for violation in checked.violations:
            if violation.severity == "violation":
                world.wrong(f"check: {violation.line}")

    async def _judge_rows(self, session: Session) -> None:
        for known in self.known:
            await read_all(session, session.rows(known.name), must=True)
        for rows in session.oracle.tables.values():
            for wrong in rows.taken_back():
                session.wrong(wrong)

    async def _judge_folders(self) -> None:
        """Folders that nobody needs are gone."""
        world = self.world
        judged = world.orphans

        def left() -> list[str]:
            return judged.left(world.disks, world.clock.wall_ms())

        if not await self._over("orphans", lambda: not left()):
            world.wrong(f"orphans: {left()} are left")

    async def _judge_shaped(self) -> None:
        """Every frontend has the table of the model, whichever way it is read; entries of an index
        are asked of any."""
        (alterer,) = self.alterers
        await alterer.judge()
        self.world.shapes.end(self.world.nodes)
        table = alterer.table
        for frontend in self.world.frontends:
            line = Line(self.world.session(f"judge-{frontend.name}"), [frontend])
            await read_whole(line, table, must=True)
        await read_by_indexes(self._line("judge"), table)
