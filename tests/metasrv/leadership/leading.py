"""A server that leads: its whole term in virtual time, over a store in memory."""

from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from keys.catalog.follower import Follower
from keys.commit.bootstrap import bootstrap_request
from keys.model.cluster import LeaderKey, LeaderRecord
from keys.store.kv import Compare, Kv, Put, Request
from keys.store.memory import MemoryKv
from keys.value import encode
from metasrv.leadership.leadership import ServerDeps, lead
from metasrv.leadership.term import Term
from metasrv.program.config import ServerConfig
from tests.fakes.chance import SeededIds, SeededRng
from tests.metasrv.api.fakes import NoJobs
from tests.sim.loop import SimClock, SimLoop

CLUSTER = "11111111-2222-7333-8444-555555555555"
DEADLINE_MS = 2_000


class Leading:
    """One server. Its nodes answer nothing."""

    def __init__(
        self,
        loop: SimLoop,
        name: str = "ms-1",
        *,
        kv: MemoryKv | None = None,
        reached_by: Callable[[MemoryKv], Kv] = lambda kv: kv,
    ) -> None:
        """*kv*: the store that it shares with a server before it. *reached_by*: faults between
        them."""
        self.loop, self.name = loop, name
        self.clock = SimClock(loop)
        self.kv = kv or MemoryKv(self.clock)
        store = reached_by(self.kv)
        self.follower = Follower(store, self.clock, deadline_ms=DEADLINE_MS)
        self.deps = ServerDeps(
            config=ServerConfig(server_id=name, data_dir=Path("nowhere")),
            kv=store,
            clock=self.clock,
            ids=SeededIds(self.clock),
            rng=SeededRng(1),
            follower=self.follower,
            jobs=NoJobs(),
            transport=httpx.MockTransport(lambda request: httpx.Response(503)),
        )
        self.term: Term | None = None
        self.ended: str | None = None

    async def begin(self, given: Mapping[bytes, bytes]) -> None:
        """Leads a cluster that is there, with *given* in its store."""
        fence = await self.elect()
        first = bootstrap_request(fence, CLUSTER, self.clock.wall_ms())
        await self.kv.txn(first, deadline_ms=DEADLINE_MS)
        await self.put(given)
        await self.follower.log.load()
        self.lead(fence)

    async def elect(self) -> Compare:
        """It wins, whoever led."""
        seat = LeaderRecord(server=self.name, url=f"http://{self.name}", lease="1")
        return Compare(bytes(LeaderKey()), await self.put({bytes(LeaderKey()): encode(seat)}))

    def follow(self) -> None:
        self.loop.spawn(self.name, self.follower.log.follow())

    def lead(self, fence: Compare) -> None:
        self.loop.spawn(self.name, self._lead(fence))

    async def _lead(self, fence: Compare) -> None:
        try:
            await lead(self.deps, fence, self._heard)
        except* Exception as error:  # noqa: BLE001 - what ends a term is what is tested
            self.ended = str(error.exceptions)

    def _heard(self, term: Term | None) -> None:
        self.term = term

    async def put(self, values: Mapping[bytes, bytes]) -> int:
        writes = tuple(Put(key, value) for key, value in values.items())
        return (await self.kv.txn(Request(writes=writes), deadline_ms=DEADLINE_MS)).revision

    def stored(self) -> dict[bytes, bytes]:
        return {item.key: item.value for item in self.kv.dump()}
