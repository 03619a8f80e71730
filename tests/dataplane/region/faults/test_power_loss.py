"""Power loss before any file operation: what was acknowledged is there, whatever else is."""

from collections.abc import Callable

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.place import RegionLimits
from tests.dataplane.region.power_loss import DEVICES, FAST, Life, PowerLoss
from tests.dataplane.region.rig import SPEC, A, B, Contents, contents, order, place, write

TINY = RegionLimits(memtable_bytes=1)


def create_and_work(life: Life) -> None:
    region = Region.create(place(life.disk), SPEC, epoch=1)
    life.created = True
    work(life, region, "first")


def reopen_and_work(life: Life) -> None:
    region = Region.open(place(life.disk), order(1))
    life.created = True
    work(life, region, "again")


def spill_and_work(life: Life) -> None:
    """Replays more than memory may hold."""
    region = Region.open(place(life.disk, limits=TINY), order(1))
    life.created = True
    work(life, region, "spilled")


def take_over_and_work(life: Life) -> None:
    region = Region.open(place(life.disk, B), order(2, A))
    work(life, region, "taken")


def work(life: Life, region: Region, name: str) -> None:
    for number in range(4):
        key = f"{name} {number}".encode()
        write(region, f"{name} {number}", {key: (number, name)})
        life.acknowledged[key] = (number, name)
        if number == 1:
            region.maintenance.flush()


PROGRAMS: dict[str, tuple[Callable[[Life], None], ...]] = {
    "create": (create_and_work,),
    "reopen": (create_and_work, reopen_and_work),
    "spill": (create_and_work, spill_and_work),
    "take over": (create_and_work, take_over_and_work),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "device",
    [pytest.param(device, marks=pytest.mark.crash) for device in DEVICES if device != FAST]
    + [FAST],
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_given_power_loss_before_any_operation_when_opened_then_the_acknowledged_is_there(
    program: str, device: str
) -> None:
    enumerate_program(program, device)


def enumerate_program(program: str, device: str) -> None:
    *earlier, last = PROGRAMS[program]
    end_at, ended = 0, False

    while not ended:
        end_at += 1
        store = MemoryStore()
        known: Contents = {}
        for step in earlier:
            life = Life(store, 0)
            step(life)
            known |= life.acknowledged
        ended = not lose_power(store, last, end_at, device, known)

    assert end_at > 30


def live_on(program: tuple[Callable[[Life], None], ...]) -> None:
    """No power is lost: one process after the other, and one more that opens what they made."""
    store, known = MemoryStore(), Contents()
    for step in program:
        life = Life(store, 0)
        step(life)
        known |= life.acknowledged
    took_over = program[-1] is take_over_and_work
    root, how = (B, order(3, A)) if took_over else (A, order(1))
    assert contents(Region.open(place(MemoryDisk(store), root), how)) == known


def lose_power(
    store: MemoryStore, program: Callable[[Life], None], end_at: int, device: str, known: Contents
) -> bool:
    """False: the program had ended before."""
    life = Life(store, end_at)
    try:
        program(life)
    except PowerLoss:
        store.crash(*DEVICES[device])
    else:
        return False

    if program is take_over_and_work:
        after = Region.open(place(MemoryDisk(store), B), order(3, A))
    elif known or life.created:
        after = Region.open(place(MemoryDisk(store)), order(1))
    else:
        after = Region.create(place(MemoryDisk(store)), SPEC, epoch=1)

    seen = contents(after)
    expected = known | life.acknowledged
    extra = {key for key in seen if key not in expected}
    assert expected.items() <= seen.items()
    assert len(extra) <= 1, "at most what was being written"
    for key, row in expected.items():
        assert write(after, key.decode(), {key: row}).repeated, "the answer is remembered, too"
    write(after, "after all", {b"after": (0, None)})
    return True
