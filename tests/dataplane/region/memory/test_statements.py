"""The memory of statements: how long it lasts, what it takes, and where it is on disk."""

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.manifests.manifest import ListedStatement, publish_manifest
from dataplane.region.memory.budget import STATEMENTS, MemoryBudget
from dataplane.region.memory.statement_table import (
    RECORD_BYTES,
    Remembered,
    StatementTable,
    digest_of,
)
from dataplane.region.memory.statements import StatementMemory, StatementWindow
from metasrv_base.errors import Conflict, Corrupt, MetaError, Unavailable
from tests.dataplane.region.rig import SPEC, A, B, batch, by_key, header, order, place, write
from tests.fakes.clock import FakeClock

WINDOW = StatementWindow()
ID_BYTES_MAX = 64
NOW_MS = 1_700_001_000_000
MANY = 12_000
"""More than were kept when statements were counted."""


def others(region: Region, count: int, at_once: int = 1_000) -> None:
    """Statements of other clients."""
    for first in range(0, count, at_once):
        group = [
            (header(f"o-{n}", region.opening.epoch), batch({b"o": (n, None)}))
            for n in range(first, first + at_once)
        ]
        region.writer.apply(group)


@pytest.mark.slow
def test_given_a_lost_answer_when_many_others_follow_then_its_copy_has_no_effect() -> None:
    region = Region.create(place(), SPEC, 1)
    write(region, "insert", {b"k": (1, "old")})
    first = write(region, "late delete", {b"k": None})
    others(region, MANY)
    write(region, "insert again", {b"k": (2, "acknowledged")}, {b"k": 0})

    again = write(region, "late delete", {b"k": None})

    assert again == replace(first, repeated=True)
    assert by_key(region, b"k") == {b"k": (2, "acknowledged")}


def test_given_a_statement_when_it_comes_within_the_window_then_it_is_known_and_then_too_old() -> (
    None
):
    clock = FakeClock()
    region, sent_ms = Region.create(place(clock=clock), SPEC, 1), clock.wall_ms()
    first = write(region, "s", {b"k": (1, None)}, sent_ms=sent_ms)

    clock.advance(WINDOW.age_ms_max)
    assert write(region, "s", {b"k": (1, None)}, sent_ms=sent_ms) == replace(first, repeated=True)

    clock.advance(1)
    with pytest.raises(Conflict) as refused:
        write(region, "s", {b"k": (1, None)}, sent_ms=sent_ms)
    assert refused.value.code == "statement-too-old"
    assert refused.value.facts["is_forgotten"] is True
    assert refused.value.facts["sent_ms"] == sent_ms
    assert refused.value.facts["now_ms"] == clock.wall_ms()


def test_given_a_first_copy_that_was_held_up_when_it_comes_then_it_is_refused() -> None:
    clock = FakeClock()
    region, sent_ms = Region.create(place(clock=clock), SPEC, 1), clock.wall_ms()
    clock.advance(600_000)

    with pytest.raises(Conflict) as refused:
        write(region, "s", {b"k": (1, None)}, sent_ms=sent_ms)

    assert refused.value.code == "statement-too-old"
    assert refused.value.facts["is_forgotten"] is False
    assert by_key(region, b"k") == {}


@pytest.mark.parametrize("ahead_ms", [0, WINDOW.drift_ms, WINDOW.drift_ms + 1])
def test_given_a_sender_whose_clock_is_ahead_when_it_writes_then_the_allowance_decides(
    ahead_ms: int,
) -> None:
    clock = FakeClock()
    region, sent_ms = Region.create(place(clock=clock), SPEC, 1), clock.wall_ms() + ahead_ms

    if ahead_ms <= WINDOW.drift_ms:
        write(region, "s", {b"k": (1, None)}, sent_ms=sent_ms)
        return
    with pytest.raises(Conflict) as refused:
        write(region, "s", {b"k": (1, None)}, sent_ms=sent_ms)
    assert refused.value.code == "clock-skew"
    assert refused.value.facts["sent_ms"] == sent_ms
    assert refused.value.facts["now_ms"] == clock.wall_ms()


def test_given_a_key_without_a_time_when_it_comes_again_then_its_arrival_counts() -> None:
    clock = FakeClock()
    region = Region.create(place(clock=clock), SPEC, 1)
    first = write(region, "mine", {b"k": (1, None)})

    clock.advance(WINDOW.window_ms)

    assert write(region, "mine", {b"k": (1, None)}) == replace(first, repeated=True)


def test_given_versions_far_ahead_when_a_statement_comes_then_its_age_is_not_measured_in_them() -> (
    None
):
    clock = FakeClock()
    region = Region.create(place(clock=clock), SPEC, 1)
    first = write(region, "s", {b"k": (1, None)}, sent_ms=clock.wall_ms())
    region.open_mark("restore", (clock.wall_ms() + 86_400_000) << 20)
    write(region, "t", {b"l": (1, None)}, sent_ms=clock.wall_ms())

    again = write(region, "s", {b"k": (1, None)}, sent_ms=clock.wall_ms())

    assert again == replace(first, repeated=True)


@pytest.mark.parametrize("flushes", [True, False], ids=["flushed", "logged"])
@pytest.mark.parametrize("root", [A, B], ids=["reopened", "taken over"])
def test_given_an_answer_when_the_region_is_opened_anew_then_a_copy_is_given_the_same(
    root: str, flushes: bool
) -> None:
    disk, clock = MemoryDisk(MemoryStore()), FakeClock()
    region = Region.create(place(disk, clock=clock), SPEC, 1)
    rows = {b"k": (1, "x"), b"l": (2, "y"), b"m": None}
    first = write(region, "s", rows, sent_ms=clock.wall_ms())
    if flushes:
        region.maintenance.flush()

    how = order(1) if root == A else order(2, A)
    region = Region.open(place(disk, root, clock), how)
    again = write(region, "s", rows, sent_ms=clock.wall_ms())
    region = Region.open(place(disk, root, clock), how)

    assert again == replace(first, repeated=True)
    assert again.rows == 3
    assert write(region, "s", rows) == again


def test_given_a_manifest_that_lists_statements_when_opened_then_they_are_remembered() -> None:
    disk, clock = MemoryDisk(MemoryStore()), FakeClock()
    Region.create(place(disk, clock=clock), SPEC, 1)
    listed = ListedStatement(statement_id="s", version=7 << 20, rows=3)
    older = {"number": 2, "statements": (listed,), "version": 9 << 20}
    manifest = Region.open(place(disk, clock=clock), order(1)).manifest
    publish_manifest(disk, A, manifest.model_copy(update=older))

    for _ in range(2):
        region = Region.open(place(disk, clock=clock), order(1))
        again = write(region, "s", {b"k": (1, None)})

        assert (again.version, again.rows, again.repeated) == (7 << 20, 3, True)
        assert region.manifest.statements == ()


def test_given_a_crash_loop_when_opened_again_and_again_then_files_do_not_grow() -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, 1)
    others(region, 1_000)

    sizes = set()
    for _ in range(4):
        region = Region.open(place(disk), order(1))
        sizes.add(sum(file.bytes for file in region.manifest.statement_files))

    assert len(sizes) == 1
    names = [name for name in disk.list(A) if name.startswith("ids-")]
    assert names == [file.name for file in region.manifest.statement_files]


def written_bytes(disk: MemoryDisk, region: Region, round: int) -> tuple[int, int]:
    """Lengths of the statement files and of the manifest, after a flush of one statement."""
    write(region, f"round {round}", {b"k": (round, None)})
    region.maintenance.flush()
    names = disk.list(A)
    newest = max((name for name in names if name.startswith("manifest-")), key=len_and_text)
    files = [f"{A}/{name}" for name in names if name.startswith("ids-")]
    return sum(map(disk.size, files)), disk.size(f"{A}/{newest}")


def len_and_text(name: str) -> tuple[int, str]:
    return len(name), name


@pytest.mark.slow
def test_given_many_statements_when_flushed_then_a_flush_writes_the_new_ones_alone() -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, 1)
    others(region, MANY)
    before, _ = written_bytes(disk, region, 1)

    after, manifest = written_bytes(disk, region, 2)

    assert after - before == RECORD_BYTES
    assert manifest < 4_096


def test_given_statements_outside_the_window_when_flushed_then_their_files_go() -> None:
    disk, clock = MemoryDisk(MemoryStore()), FakeClock()
    region = Region.create(place(disk, clock=clock), SPEC, 1)
    write(region, "s", {b"k": (1, None)})
    region.maintenance.flush()
    (old,) = region.manifest.statement_files

    clock.advance(2 * WINDOW.age_ms_max)
    write(region, "t", {b"k": (2, None)})
    region.maintenance.flush()

    (new,) = region.manifest.statement_files
    assert [name for name in disk.list(A) if name.startswith("ids-")] == [new.name]
    assert new.name != old.name
    assert region.manifest.forgotten_ms == clock.wall_ms() - 2 * WINDOW.age_ms_max


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_given_a_damaged_file_of_statements_when_opened_then_it_is_not_believed(
    damage: str,
) -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, 1)
    write(region, "s", {b"k": (1, None)})
    region.maintenance.flush()
    (named,) = region.manifest.statement_files
    path = f"{A}/{named.name}"
    data = bytearray(disk.read(path, 0, named.bytes))
    disk.remove(path)
    if damage != "gone":
        data[20] ^= 1 if damage == "changed" else 0
        file = disk.create(path)
        file.append(bytes(data[:-1] if damage == "cut" else data))
        file.sync()

    with pytest.raises((Corrupt, Unavailable)) as refused:
        Region.open(place(disk), order(1))

    if damage == "gone":
        assert refused.value.code == "region-lost"


@pytest.mark.slow
def test_given_no_memory_when_statements_come_then_they_are_refused_until_some_are_old() -> None:
    clock, budget = FakeClock(), MemoryBudget(int(4_000 / STATEMENTS))
    at = replace(place(clock=clock), budget=budget)
    region = Region.create(at, SPEC, 1)
    taken = fill(region, clock)

    assert write(region, "s-0", {b"k": (0, None)}, sent_ms=clock.wall_ms()).repeated
    assert 1 < taken < 200

    clock.advance(WINDOW.age_ms_max + 1)
    region.maintenance.forget_statements()
    assert budget.statement_bytes == 0
    assert fill(region, clock, "again") == taken
    region.close()
    assert budget.bytes == budget.statement_bytes == 0


def fill(region: Region, clock: FakeClock, prefix: str = "s") -> int:
    """Writes until a statement is refused for want of memory; the rows are flushed away."""
    for number in range(1_000):
        head = header(f"{prefix}-{number}", sent_ms=clock.wall_ms())
        (answer,) = region.writer.apply([(head, batch({b"k": (number, None)}))])
        if isinstance(answer, MetaError):
            assert (type(answer), answer.code) == (Unavailable, "statement-memory-full")
            return number
        region.maintenance.flush()
    raise AssertionError("memory has a bound")


def test_given_a_clock_that_leaps_ahead_when_it_is_set_right_then_statements_are_taken() -> None:
    clock = FakeClock()
    region = Region.create(place(clock=clock), SPEC, 1)
    sent_ms = clock.wall_ms()
    write(region, "s", {b"k": (1, None)}, sent_ms=sent_ms)
    clock.advance(3_600_000)
    region.maintenance.forget_statements()
    clock.advance(-3_600_000)

    with pytest.raises(Conflict) as refused:
        write(region, "s", {b"k": (1, None)}, sent_ms=sent_ms)
    clock.advance(1)
    write(region, "t", {b"k": (2, None)}, sent_ms=clock.wall_ms())

    assert refused.value.facts["is_forgotten"] is True


@pytest.mark.slow
def test_given_many_ids_when_remembered_then_none_takes_more_than_its_bytes() -> None:
    memory, count = StatementMemory(WINDOW), 200_000
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(count):
        memory.add(f"{number:032x}-3", Remembered(number << 20, NOW_MS + number // 2, 1))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (after - before) / count <= ID_BYTES_MAX
    assert (after - before) == pytest.approx(memory.size_bytes, rel=0.05)
    assert len(memory) == count


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(0, 60))
def test_given_statements_when_packed_then_each_is_found_as_it_was(
    numbers: list[int], cut: int
) -> None:
    table, known = StatementTable(), dict[int, Remembered]()
    for at, number in enumerate(numbers):
        if number not in known:
            known[number] = Remembered(at, NOW_MS + number, number)
            table.add(digest_of(str(number)), known[number])
        if at == cut:
            table = StatementTable(table.records())

    for number in range(41):
        assert table.find(digest_of(str(number))) == known.get(number)
    assert table.latest_ms == max((one.sent_ms for one in known.values()), default=0)
