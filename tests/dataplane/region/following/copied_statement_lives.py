"""Seeded lives of a region with copies whose statements are sent twice: copies come as learners,
lead, and begin anew, empty, each by a clock of its own."""

from dataclasses import dataclass, field
from random import Random

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.group import Applied
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.following.leading import LedOpening, lead, lead_new
from dataplane.region.place import RegionPlace
from metasrv_base.errors import Conflict
from tests.dataplane.region.following.stream import sent
from tests.dataplane.region.rig import SPEC, order, place, write
from tests.dataplane.region.statement_lives import LEAP_MS, LIMITS, WINDOW, Made
from tests.fakes.clock import FakeClock

STEPS = 150
SEEDS = 20
COPIES_MAX = 3


@dataclass
class CopiedStatementWorld:
    random: Random
    is_wild: bool
    disk: MemoryDisk = field(default_factory=lambda: MemoryDisk(MemoryStore()))
    true: FakeClock = field(default_factory=FakeClock)
    clocks: list[FakeClock] = field(default_factory=list)
    epoch: int = 1
    roots: int = 0
    made: list[Made] = field(default_factory=list)
    applied: dict[str, Applied] = field(default_factory=dict)
    copies: list[CopyRegion] = field(default_factory=list)
    promoted: int = 0
    emptied: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        self.led: LedOpening = lead_new(self.new_place(), SPEC, self.epoch)

    def new_place(self) -> RegionPlace:
        """A root at a node whose clock is off."""
        far = LEAP_MS if self.is_wild and self.random.random() < 0.3 else WINDOW.drift_ms // 2
        clock = FakeClock()
        clock.now_ms = self.true.now_ms + self.random.randint(-far, far)
        self.clocks.append(clock)
        self.roots += 1
        return place(self.disk, f"/disk/{self.roots}", clock, LIMITS)

    def step(self) -> None:
        act = self.random.choices(
            [self.send, self.pause, self.flush, self.add, self.catch_up, self.promote, self.empty],
            [60, 15, 2, 8, 15, 8, 2],
        )[0]
        act()

    def send(self) -> None:
        if not self.made or self.random.random() < 0.4:
            off_ms = self.random.randint(-WINDOW.drift_ms // 2, WINDOW.drift_ms // 2)
            sent_ms = self.true.wall_ms() + off_ms
            self.made.append(Made(f"s-{len(self.made)}", sent_ms, self.true.wall_ms()))
            if self.random.random() < 0.5:
                return  # it arrives later, if ever
        self.arrive(self.random.choice(self.made[-20:]))

    def arrive(self, made: Made) -> None:
        region, applied = self.led.region, self.applied.get(made.id)
        try:
            answer = write(region, made.id, {made.id.encode(): (1, None)}, None, made.sent_ms)
        except Conflict as error:
            self.judge_refusal(made, error)
            return
        if applied is None:
            assert not answer.repeated, "nothing was applied before"
            self.applied[made.id] = answer
        else:
            assert answer.repeated, "applied twice"

    def judge_refusal(self, made: Made, error: Conflict) -> None:
        self.refused += 1
        assert error.code in ("statement-too-old", "clock-skew")
        if error.code == "statement-too-old" and not error.facts["is_forgotten"]:
            assert made.id not in self.applied, "it was applied, and is told as not done"
        is_fresh = self.true.wall_ms() - made.true_ms <= WINDOW.window_ms
        is_plain = not self.is_wild and not self.emptied
        assert not (is_fresh and is_plain), f"refused within the window: {error}"

    def pause(self) -> None:
        ms = self.random.choice([1, 30, 200, 700])
        for clock in (self.true, *self.clocks):
            clock.advance(ms)
        self.led.region.maintenance.forget_statements()

    def flush(self) -> None:
        self.led.region.maintenance.flush()

    def add(self) -> None:
        if len(self.copies) < COPIES_MAX:
            self.copies.append(
                CopyRegion.create(self.new_place(), SPEC, self.epoch, is_learner=True)
            )

    def catch_up(self) -> None:
        """A copy takes what it lacks; one that needs files is given up."""
        for copy in self.random.sample(self.copies, len(self.copies)):
            region = self.led.region
            upto = self.random.randint(copy.durable.sequence, region.log_history.end)
            if region.log_history.base.sequence > copy.durable.sequence:
                copy.close()
                self.copies.remove(copy)
            else:
                copy.take(sent(region, copy.durable.sequence, upto, upto=upto))

    def is_in_sync(self, copy: CopyRegion) -> bool:
        """Whether it follows this leader, and has all of its records."""
        end = self.led.region.log_history.end
        return copy.rows is not None and (copy.epoch, copy.durable.sequence) == (self.epoch, end)

    def promote(self) -> None:
        """A planned switch to a copy that has all records and has heard of this leader."""
        ready = [copy for copy in self.copies if self.is_in_sync(copy)]
        if not ready:
            return
        copy = self.random.choice(ready)
        self.copies.remove(copy)
        copy.close()
        old = self.led.region
        old.close()
        self.epoch += 1
        self.led = lead(copy.place, order(self.epoch))
        self.led.count()
        self.promoted += 1
        if self.random.random() < 0.5:
            self.copies.append(CopyRegion(old.place, old.spec.region_id))

    def empty(self) -> None:
        """A truncate: the leader begins anew, and so does a copy that has all of its records."""
        old, in_sync = self.led.region, [self.is_in_sync(copy) for copy in self.copies]
        old.close()
        self.epoch += 1
        self.led = lead_new(self.new_place(), SPEC, self.epoch, [old.place.root])
        new = []
        for copy, has_all in zip(self.copies, in_sync, strict=True):
            copy.close()
            replaces = [copy.place.root]
            new.append(
                CopyRegion.create(
                    *(self.new_place(), SPEC, self.epoch, replaces), is_learner=not has_all
                )
            )
        self.copies = new
        self.emptied += 1


def live_copied(seed: int, *, is_wild: bool) -> CopiedStatementWorld:
    world = CopiedStatementWorld(Random(f"copied statements {seed} {is_wild}"), is_wild)
    for _ in range(STEPS):
        world.step()
    return world
