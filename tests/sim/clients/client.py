"""The base of every client in the simulation: the SDK over the network that fails, and a seed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

from metasrv.sdk.control.names import TableName
from metasrv.sdk.control.operations import Failovers, Procedures
from metasrv.sdk.control.service import ControlService
from metasrv.sdk.control.tables import Tables
from metasrv.sdk.rows.binding import Binding
from metasrv.sdk.rows.frontends import Frontends
from metasrv.sdk.rows.rows import AsyncRows
from metasrv_base.errors import MetaError, Unavailable, Unknown
from metasrv_base.wire.http.client import HttpClient
from tests.fakes.chance import SeededRng
from tests.sim.checks.oracle import Oracle
from tests.sim.cluster.net import Network, Wire
from tests.sim.loop import SimClock, SimLoop

T = TypeVar("T")
PATIENCE_MS = 6_000
AGAIN_MS = 500


@dataclass
class Session:
    """One client's connections. `name` is its host."""

    name: str
    loop: SimLoop
    network: Network
    oracle: Oracle
    metasrvs: tuple[str, ...]
    wrong: Callable[[str], None]

    def __post_init__(self) -> None:
        self.random = Random(self.loop.random.getrandbits(64))
        self.clock = SimClock(self.loop)
        self.http = HttpClient(self.metasrvs, transport=Wire(self.network))
        rng = SeededRng(self.random.getrandbits(32))
        self.service = ControlService(self.http, rng, patience_ms=PATIENCE_MS)
        self.tables = Tables(self.service)
        self.failovers = Failovers(self.service)
        self.procedures = Procedures(self.service)
        self._frontends = Frontends(self.service, rng, Wire(self.network))
        self._asked = 0

    def rows(self, name: str) -> AsyncRows:
        binding = Binding(self.service, TableName.parse(name), self.clock)
        return AsyncRows(binding, self._frontends, self.clock)

    async def think(self, ms_max: int) -> None:
        await self.clock.sleep_ms(self.random.randrange(1, ms_max))

    def key(self) -> str:
        """A new idempotency key, or statement id."""
        self._asked += 1
        return f"{self.name}-{self._asked}"

    @property
    def now(self) -> float:
        return self.loop.time()

    def count(self, what: str) -> None:
        self.network.weather.sometimes[what] += 1


@dataclass(frozen=True)
class End(Generic[T]):
    """The final end of a change: a value, or an error that says that nothing was done."""

    value: T | None
    error: MetaError | None = None


async def pursued(session: Session, ask: Callable[[str], Awaitable[T]]) -> "End[T]":
    """Asks with one idempotency key until the answer is final, however long that takes."""
    key = session.key()
    while True:
        try:
            return End(await ask(key))
        except MetaError as error:
            session.loop.trace(session.name, key, error.code)
            if not _is_open(error):
                session.count(f"refused: {error.code}")
                return End(None, error)
            session.count("asked again with the same key")
        await session.clock.sleep_ms(AGAIN_MS)


def _is_open(error: MetaError) -> bool:
    """Whether the same key may yet be answered otherwise. An error that ended a procedure names it,
    and so does an Unknown of one that goes on."""
    if isinstance(error, Unknown):
        return True
    return isinstance(error, Unavailable) and "procedure_id" not in error.facts
