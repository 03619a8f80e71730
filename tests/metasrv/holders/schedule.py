"""Random schedules of holders and leaders: does a step ever go on while an older version is used?

Requests and answers travel for up to most of a lease, clocks of holders run fast or slow within
what P4 allows, leaders die, holders are cut off. The oracle looks at the moment at which a step
goes on; floors, which make even a mistake here harmless, are not part of it.
"""

from dataclasses import dataclass, field
from itertools import count
from random import Random

from metasrv.holders.holder_registry import HolderRegistry
from metasrv.nodes.lease_table import DRIFT
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.frontend.holders import Pin
from tests.metasrv.holders.leaders import LEASE_MS, TABLE, TTL_MS, Office, Served
from tests.metasrv.holders.samples import acknowledgement, pin, registration
from tests.sim.loop import SimLoop, run

ACKNOWLEDGE_MS = LEASE_MS // 5
TRANSACTION_MS_MAX = 10_000
TRAVEL_MS_MAX = 9_000
RUN_MS = 150_000
HOLDERS = ("fe-1", "fe-2")


@dataclass(eq=False)
class SimHolder:
    """A frontend: binds transactions to what it has applied, and stops by its own clock."""

    name: str
    world: "Schedule"
    rate: float
    """Its clock's milliseconds for one of the world's."""
    serves_until: float = 0.0
    """By its own clock."""
    version: int = 0
    schema_version: int = 0
    open: dict[int, int] = field(default_factory=dict)
    """Transaction -> the schema version that it is bound to."""
    incarnation: str = ""
    is_cut_off: bool = False
    """Whether it reaches no server: it hears of no version either."""

    def now(self) -> float:
        return self.world.office.clock.mono_ms() * self.rate

    @property
    def serves(self) -> bool:
        return self.now() < self.serves_until

    def uses_below(self, schema_version: int) -> bool:
        return self.serves and any(bound < schema_version for bound in self.open.values())

    def pins(self) -> tuple[Pin, ...]:
        return (pin(TABLE, min(self.open.values())),) if self.open else ()

    def lease_from(self, sent: float) -> float:
        """When the lease begins that an answer grants."""
        return sent

    async def live(self) -> None:
        self.world.office.loop.spawn(self.name, self.transact())
        self.world.office.loop.spawn(self.name, self.follow())
        self.world.office.loop.spawn(self.name, self.lose())
        while True:
            try:
                await self.hold()
            except MetaError:
                await self.world.travel(500)

    async def hold(self) -> None:
        """One incarnation, until its lease has ended or it is not known any more."""
        self.serves_until, self.open = 0.0, {}
        self.incarnation, sent = f"i-{next(self.world.numbers)}", self.now()
        said = registration(self.name, incarnation=self.incarnation)
        await self.travel()
        answer = await self.world.leader.sync.register(said)
        await self.travel()
        while self.version < answer.catalog_version:
            await self.world.office.clock.sleep_ms(20)
        self.serves_until = self.lease_from(sent) + answer.lease_ms
        for sequence in count(1):
            if not self.serves:
                return
            self.world.office.loop.spawn(self.name, self.tell(self.incarnation, sequence))
            await self.world.office.clock.sleep_ms(ACKNOWLEDGE_MS)

    async def tell(self, incarnation: str, sequence: int) -> None:
        """One acknowledgement; it may overtake another."""
        sent, told = self.now(), acknowledgement(self.name, sequence, self.version, *self.pins())
        said = told.model_copy(update={"incarnation": incarnation})
        try:
            await self.travel()
            answer = self.world.leader.sync.acknowledge(said)
            await self.travel()
        except MetaError:
            return
        if incarnation == self.incarnation and self.serves:
            until = self.lease_from(sent) + answer.lease_ms
            self.serves_until = max(self.serves_until, until)

    async def travel(self) -> None:
        """Lets messages on their way arrive, however late; later ones are lost."""
        if self.is_cut_off:
            raise Unavailable
        await self.world.travel()

    async def lose(self) -> None:
        """Now and then no server is reached for about a lease."""
        while True:
            await self.world.office.clock.sleep_ms(self.world.draw.randrange(2 * LEASE_MS))
            self.is_cut_off = True
            await self.world.office.clock.sleep_ms(self.world.draw.randrange(3 * LEASE_MS // 2))
            self.is_cut_off = False

    async def follow(self) -> None:
        """The feed: late, in order."""
        while True:
            await self.world.office.clock.sleep_ms(self.world.draw.randrange(20, 400))
            if not self.is_cut_off:
                self.version, self.schema_version = self.world.published

    async def transact(self) -> None:
        for number in count():
            await self.world.office.clock.sleep_ms(self.world.draw.randrange(10, 3_000))
            if self.serves and self.schema_version:
                self.open[number] = self.schema_version
                self.world.office.loop.spawn(self.name, self.end(number))

    async def end(self, number: int) -> None:
        await self.world.office.clock.sleep_ms(self.world.draw.randrange(TRANSACTION_MS_MAX))
        self.open.pop(number, None)


@dataclass(frozen=True)
class Parts:
    """The parts that may have a bug."""

    book: type[HolderRegistry] = HolderRegistry
    holder: type[SimHolder] = SimHolder


@dataclass
class Schedule:
    """One run."""

    office: Office
    draw: Random
    parts: Parts
    steps: int = 0
    """Transitions that went on."""
    found: str | None = None
    """A violation that was seen; None: none."""
    published: tuple[int, int] = (0, 0)
    """Catalog version and schema version, as any server streams them."""

    def __post_init__(self) -> None:
        self.numbers = count(1)
        self.holders = [
            self.parts.holder(name, self, 1 + self.draw.uniform(-DRIFT, DRIFT) / 3)
            for name in HOLDERS
        ]

    async def travel(self, ms_max: int | None = None) -> None:
        """Mostly fast; one in four takes very long."""
        slow = TRAVEL_MS_MAX if self.draw.random() < 0.25 else 50
        await self.office.clock.sleep_ms(self.draw.randrange(ms_max or slow))

    async def go(self) -> None:
        self.leader: Served = await self.office.elect("ms-0")
        await self.leader.publish(1)
        self.published = self.leader.follower.catalog.version, 1
        for holder in self.holders:
            self.office.loop.spawn(holder.name, holder.live())
        schema_version = 1
        for term in count(1):
            until = self.office.clock.mono_ms() + self.draw.randrange(5_000, 40_000)
            change = self.office.loop.spawn(self.leader.name, self.change(schema_version))
            while self.office.clock.mono_ms() < until:
                await self.office.clock.sleep_ms(500)
            self.office.loop.kill(self.leader.name)
            schema_version = self.published[1]
            assert change is not None
            if self.found or self.office.clock.mono_ms() > RUN_MS:
                return
            await self.office.clock.sleep_ms(self.draw.randrange(TTL_MS))
            self.leader = await self.office.elect(f"ms-{term}")

    async def change(self, schema_version: int) -> None:
        """Transition after transition. A new leader waits for the last one again."""
        while True:
            await self.leader.sync.drained(TABLE, schema_version)
            self.steps += 1
            late = [one.name for one in self.holders if one.uses_below(schema_version)]
            if late:
                self.found = f"step to {schema_version} while {late} use less"
                return
            await self.office.clock.sleep_ms(self.draw.randrange(2_000))
            schema_version += 1
            await self.leader.publish(schema_version)
            self.published = self.leader.follower.catalog.version, schema_version


def schedule(parts: Parts, seed: int) -> Schedule:
    async def main(loop: SimLoop) -> Schedule:
        world = Schedule(Office(loop, parts.book), Random(seed), parts)
        await world.go()
        return world

    return run(main, seed)
