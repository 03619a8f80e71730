"""A region with 10,000 statements in memory and in its log: its node dies, perhaps again while it
replays them, or another one takes over. Statements of before are sent again afterwards."""

from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from dataplane.region.format.families import ROWS
from dataplane.region.place import RegionLimits
from metasrv.sdk.rows.rows import AsyncRows
from metasrv_base.errors import MetaError
from tests.sim.checks.oracle import Rows
from tests.sim.clients.client import Session
from tests.sim.cluster.nodes import Datanode
from tests.sim.length import SHORT
from tests.sim.scenario import Plot

STATEMENT_MS = 12_000
AGAIN = 25
"""Statements of each writer that are sent again."""
RETURNS_MS = (10, 3_000, 25_000)
"""After which the node is back: before it is missed, or when another one has its region."""
IN_MEMORY = "statements in a log when its node died"
REPEATED = "a statement of before that was sent again"
TAKEN_OVER = "a region that another node took over with its log"

LOG = replace(
    SHORT,
    name="log",
    writers=0,
    users=25,
    statements=404,
    changes=0,
    faults_min=1,
    limits=RegionLimits(64 << 20, 3_600_000),
)
SHORT_LOG = replace(LOG, name="short-log", statements=20)


@dataclass
class Filler:
    """Puts rows one by one, and remembers under which ids."""

    session: Session
    number: int
    rows: Rows
    keys: int
    """Keys of its own: each is written several times."""
    done: list[tuple[str, int, str]] = field(default_factory=list)
    """Statement id, key and value of what was acknowledged."""

    def __post_init__(self) -> None:
        self.table: AsyncRows = self.session.rows("t0")

    async def run(self, statements: int) -> None:
        for number in range(statements):
            key = self.keys * self.number + number % self.keys
            await self._put(self.session.key(), key, f"{self.session.name}-{number}")

    async def _put(self, id: str, key: int, value: str) -> None:
        session = self.session
        session.oracle.statements += 1
        written = self.rows.begin(key, value, session.now)
        try:
            await self._sent(id, key, value)
        except MetaError as error:
            session.count(f"a statement refused: {error.code}")
        else:
            written.ended = session.now
            self.done.append((id, key, value))

    async def _sent(self, id: str, key: int, value: str) -> bool:
        """Whether it was done before."""
        row = {"id": key, "v": value}
        await self.table.upsert([row], statement_id=id, deadline_ms=STATEMENT_MS)
        return True

    async def again(self) -> None:
        """Statements whose rows were written again since: each did its work once."""
        old = self.done[: max(0, len(self.done) - self.keys)]
        for id, key, value in self.session.random.sample(old, min(AGAIN, len(old))):
            try:
                await self._sent(id, key, value)
            except MetaError as error:
                self.session.count(f"a statement refused: {error.code}")
            else:
                self.session.count(REPEATED)


class Log(Plot):
    regions = 1

    def _actors(self) -> "list[tuple[str, Coroutine[Any, Any, None]]]":
        world, length = self.world, self.length
        rows = world.oracle.rows(self.known[0].table_id)
        keys = length.statements * 3 // 8
        self.fillers = [
            Filler(world.session(f"filler-{n}"), n, rows, keys) for n in range(length.users)
        ]
        return [(one.session.name, one.run(length.statements)) for one in self.fillers]

    async def _trouble(self) -> None:
        world, random = self.world, self.world.random
        wanted = self.length.users * self.length.statements
        await self._over("a long log", lambda: world.oracle.statements >= wanted)
        world.weather.is_tried = True
        node = self._leader()
        assert node.service is not None
        (slot,) = _open(node, self.known[0].table_id)
        region = slot.owner.region
        written = sum(file.rows for file in region.manifest.files if file.family == ROWS)
        world.weather.sometimes[IN_MEMORY] += region.stats().rows - written
        await self._dies(node)
        if random.random() < 0.5:
            await self._dies_replaying(node)
        await self._over("the region", self._is_open)
        world.weather.sometimes[TAKEN_OVER] += self._leader() is not node
        for filler in self.fillers:
            await filler.again()

    async def _dies(self, node: Datanode) -> None:
        world, random = self.world, self.world.random
        self.faults.append("node_loses_power")
        node.lose_power(random.choice([0, 3, 40]), kept_names=random.random() < 0.3)
        await world.sleep_ms(random.choice(RETURNS_MS))
        node.start()

    async def _dies_replaying(self, node: Datanode) -> None:
        """Behind any of the operations on files by which it opens its regions."""
        self.faults.append("node_dies_at_its_disk")
        assert node.disk is not None
        node.disk.dies_in = self.world.random.randrange(25)
        await self.world.sleep_ms(4_000)
        if node.is_up:
            node.disk.dies_in = None
        else:
            node.start()

    def _leader(self) -> Datanode:
        """The node that has the region open, or had it last."""
        for node in self.world.nodes:
            if (
                node.is_up
                and node.service is not None
                and list(_open(node, self.known[0].table_id))
            ):
                return node
        raise AssertionError("nobody leads")

    def _is_open(self) -> bool:
        table = self.known[0].table_id
        return any(node.is_up and list(_open(node, table)) for node in self.world.nodes)


def _open(node: Datanode, table: int) -> Any:
    if node.service is None:
        return
    regions = node.service.regions
    for slot in regions:
        is_open = slot.region_id >> 32 == table and slot.owner is not None
        if is_open and regions.has_lease(slot.region_id, slot.epoch):
            yield slot
