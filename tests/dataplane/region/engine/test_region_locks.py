"""Parts of a region reach no private field of one another, and take their locks in one order."""

import ast
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import pytest

from dataplane.region import engine
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.format.schema import RegionSchema
from tests.dataplane.region.rig import SPEC, place, write

PARTS = sorted(Path(engine.__path__[0]).glob("*.py"))


def reached(source: str) -> list[str]:
    """Private fields of other objects that *source* reads or sets."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.endswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.stem)
def test_given_a_part_of_a_region_then_it_reaches_no_private_field_of_another(part: Path) -> None:
    assert reached(part.read_text()) == []


def test_given_a_source_then_private_fields_of_others_are_found() -> None:
    source = "self._log.append(self.content._lock, cls._made, log._number, self.__dict__)"

    assert reached(source) == ["self.content._lock", "log._number"]


@dataclass
class Held:
    """Ranks of the locks that this thread holds, in the order in which it took them."""

    ranks: list[int] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)

    def take(self, rank: int) -> None:
        assert not self.ranks or self.ranks[-1] < rank, (self.ranks, rank)
        self.ranks.append(rank)
        self.taken.add(rank)


class RankedLock:
    """A lock that refuses to be taken under one of its own rank or a higher one."""

    def __init__(self, rank: int, held: Held) -> None:
        self._lock = threading.Lock()
        self._rank = rank
        self._held = held

    def acquire(self, blocking: bool = True) -> bool:
        self._held.take(self._rank)
        return self._lock.acquire(blocking=blocking)

    def release(self) -> None:
        self._lock.release()
        self._held.ranks.remove(self._rank)

    def locked(self) -> bool:
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.release()


MERGE, FLUSH, MANIFEST, LOG, CONTENT = range(5)


class WatchedDisk:
    """Refuses every call under the lock of the content."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._disk = MemoryDisk(MemoryStore())

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._disk, name)

        def watched(*given: Any) -> Any:
            assert CONTENT not in self._held.ranks, name
            return call(*given)

        return watched


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def region(held: Held) -> Iterator[Region]:
    region = Region.create(place(cast(Disk, WatchedDisk(held))), SPEC, epoch=1)
    vars(region.maintenance)["_merging"] = RankedLock(MERGE, held)
    vars(region.maintenance)["_flushing"] = RankedLock(FLUSH, held)
    vars(region._manifest)["_lock"] = RankedLock(MANIFEST, held)
    vars(region._log)["writing"] = RankedLock(LOG, held)
    vars(region._content)["_lock"] = RankedLock(CONTENT, held)
    yield region
    assert held.ranks == []


def filled(region: Region, files: int) -> None:
    for number in range(files):
        write(region, f"s-{number}", {b"k%d" % at: (number, None) for at in range(20)})
        region.maintenance.flush()


def test_given_all_that_a_region_does_then_locks_are_taken_in_their_order(
    region: Region, held: Held
) -> None:
    filled(region, files=12)
    write(region, "last", {b"a": (1, "x")})
    region.set_schema(RegionSchema(), mark="m")
    region.snapshot("m")
    scan = region.reader.scan()
    next(scan)
    assert region.maintenance.compact() is not None
    assert not region.maintenance.has_unread_files()
    list(scan)
    region.reader.get([b"a"])
    region.reader.get_resident([b"a"], None, 0)
    region.set_schema(RegionSchema(), close=["m"])
    region.open_mark("n", region.stats().version)
    region.close_mark("n")
    assert region.maintenance.has_unread_files()
    assert region.maintenance.sweep() > 0
    region.maintenance.collect()
    region.maintenance.close_log()
    region.maintenance.forget_statements()
    region.close()

    assert held.taken == {MERGE, FLUSH, MANIFEST, LOG, CONTENT}


@pytest.mark.parametrize(("outer", "inner"), [(LOG, MANIFEST), (CONTENT, CONTENT)])
def test_given_locks_in_another_order_then_the_watch_finds_it(
    held: Held, outer: int, inner: int
) -> None:
    with RankedLock(outer, held), pytest.raises(AssertionError):
        RankedLock(inner, held).acquire()


@pytest.mark.parametrize("scanned", ["scan", "scan_values"])
def test_given_a_scan_that_is_closed_under_the_lock_when_they_are_merged_then_its_files_go(
    region: Region, scanned: str
) -> None:
    """As by the garbage collector, which closes abandoned scans in any thread, at any time."""
    filled(region, files=12)
    scan = getattr(region.reader, scanned)()
    next(scan)

    assert region.maintenance.compact() is not None
    assert not region.maintenance.has_unread_files()
    with vars(region._content)["_lock"]:
        scan.close()

    assert region.maintenance.sweep() > 0, "nobody reads what was merged"
