"""Seeded lives of a region whose statements are sent twice."""

from dataclasses import dataclass, field
from random import Random

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.group import Applied
from dataplane.region.engine.region import Region
from dataplane.region.memory.statements import StatementWindow
from dataplane.region.place import RegionLimits, RegionPlace
from metasrv_base.errors import Conflict, MetaError
from tests.dataplane.region.borrowed import bring
from tests.dataplane.region.rig import SPEC, order, place, write
from tests.fakes.clock import FakeClock

WINDOW = StatementWindow(window_ms=1_000, drift_ms=50)


LIMITS = RegionLimits(statements=WINDOW)


STEPS = 120


SEEDS = 40


LEAP_MS = 5_000


@dataclass(frozen=True)
class Made:
    """A statement: *true_ms* is when it was made by a clock that nobody has."""

    id: str
    sent_ms: int
    true_ms: int


@dataclass
class StatementWorld:
    random: Random
    is_wild: bool
    disk: MemoryDisk = field(default_factory=lambda: MemoryDisk(MemoryStore()))
    true: FakeClock = field(default_factory=FakeClock)
    roots: list[str] = field(default_factory=lambda: ["/disk/0"])
    epoch: int = 1
    made: list[Made] = field(default_factory=list)
    applied: dict[str, Applied] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.region = Region.create(self.place(), SPEC, 1)

    def place(self) -> RegionPlace:
        return place(self.disk, self.roots[-1], self.clock, LIMITS)

    def off_ms(self) -> int:
        """The error of a clock."""
        far = LEAP_MS if self.is_wild and self.random.random() < 0.3 else WINDOW.drift_ms // 2
        return self.random.randint(-far, far)

    def step(self) -> None:
        act = self.random.choices(
            [self.send, self.pause, self.flush, self.reopen, self.move, self.adopt, self.leap],
            [60, 20, 6, 4, 3, 2, 5],
        )[0]
        act()

    def send(self) -> None:
        if not self.made or self.random.random() < 0.4:
            sent_ms = self.true.wall_ms() + self.off_ms()
            self.made.append(Made(f"s-{len(self.made)}", sent_ms, self.true.wall_ms()))
            self.copy(self.made[-1])
        else:
            self.copy(self.random.choice(self.made[-30:]))

    def copy(self, made: Made) -> None:
        known = self.applied.get(made.id)
        try:
            answer = write(self.region, made.id, {made.id.encode(): (1, None)}, None, made.sent_ms)
        except Conflict as error:
            self.judge_refusal(made, error)
            return
        if known is None:
            assert not answer.repeated, "nothing was applied before"
            self.applied[made.id] = answer
        else:
            assert answer.repeated, "applied twice"
            assert (answer.version, answer.rows) == (known.version, known.rows)

    def judge_refusal(self, made: Made, error: MetaError) -> None:
        if error.code == "statement-too-old" and not error.facts["is_forgotten"]:
            assert made.id not in self.applied, "it was applied, and is told as not done"
        is_fresh = self.true.wall_ms() - made.true_ms <= WINDOW.window_ms
        assert self.is_wild or not is_fresh, f"refused within the window: {error}"
        assert error.code in ("statement-too-old", "clock-skew")

    def pause(self) -> None:
        ms = self.random.choice([1, 30, 200, 700])
        self.true.advance(ms)
        self.clock.advance(ms)
        if self.random.random() < 0.5:
            self.region.maintenance.forget_statements()

    def flush(self) -> None:
        self.region.maintenance.flush()

    def leap(self) -> None:
        """The node's clock is set."""
        self.clock.now_ms = self.true.now_ms + self.off_ms()

    def reopen(self) -> None:
        if self.random.random() < 0.5:
            self.disk.store.crash()
        self.open()

    def move(self) -> None:
        """Another node, with a clock of its own."""
        self.epoch += 1
        self.roots.append(f"/disk/{self.epoch}")
        self.open()

    def open(self) -> None:
        self.clock = FakeClock()
        self.leap()
        *borrows, _ = self.roots
        self.region = Region.open(self.place(), order(self.epoch, *borrows))

    def adopt(self) -> None:
        if not self.region.manifest.borrowed_roots:
            return
        attempt = f"attempts/{self.epoch}-{len(self.made)}"
        self.region.file_ingest.adopt(attempt, attempt, bring(self.disk, self.region, attempt))
        for root in self.roots[:-1]:
            self.disk.remove_tree(root)
        self.roots = self.roots[-1:]


def live(seed: int, *, is_wild: bool) -> StatementWorld:
    world = StatementWorld(Random(f"statements {seed} {is_wild}"), is_wild)
    for _ in range(STEPS):
        world.step()
    return world
