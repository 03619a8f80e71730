"""Contents of the block cache: within its bound, and of a footer that is larger than it."""

from collections import Counter
from dataclasses import dataclass, field

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files.block_cache import BlockCache, BlockKey
from dataplane.region.format.key_range import KeyRange
from dataplane.region.memory.budget import MemoryBudget
from dataplane.region.place import RegionLimits, RegionPlace
from tests.dataplane.region.rig import SPEC, A, write
from tests.fakes.clock import FakeClock

PAGES = 6


class CountingDisk(MemoryDisk):
    """Counts reads by their length."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.reads: Counter[int] = Counter()

    def read(self, path: str, offset: int, length: int) -> bytes:
        self.reads[length] += 1
        return super().read(path, offset, length)


@dataclass(frozen=True)
class Sized:
    nbytes: int


@dataclass
class Decoder:
    """Makes blocks, and counts how often."""

    calls: Counter[str] = field(default_factory=Counter)

    def block(self, cache: BlockCache, key: BlockKey, size: int) -> None:
        def decode() -> Sized:
            self.calls[key.path] += 1
            return Sized(size)

        cache.read(key, decode)


def footer(path: str) -> BlockKey:
    return BlockKey(path, None)


def test_given_a_footer_larger_than_the_cache_when_read_again_then_it_is_kept_and_counted() -> None:
    budget, decoder = MemoryBudget(1 << 30), Decoder()
    cache = BlockCache(10_000, budget.share().set)

    for _ in range(3):
        decoder.block(cache, footer("/large"), 50_000)
        decoder.block(cache, BlockKey("/large", 0, ("c1",)), 5_000)
    counted = budget.bytes
    decoder.block(cache, footer("/other"), 20_000)
    replaced = budget.bytes
    cache.forget_large(["/another"])
    kept = budget.bytes
    cache.forget_large(["/other"])

    assert decoder.calls == {"/large": 2, "/other": 1}, "the footer once, and the row group once"
    assert counted >= 50_000
    assert replaced == kept < 50_000
    assert budget.bytes == 0


def test_given_a_row_group_larger_than_the_cache_when_read_then_it_is_not_kept() -> None:
    budget, decoder = MemoryBudget(1 << 30), Decoder()
    cache = BlockCache(10_000, budget.share().set)

    for _ in range(2):
        decoder.block(cache, BlockKey("/f", 3, ("c1",)), 50_000)

    assert decoder.calls["/f"] == 2
    assert budget.bytes == cache.bytes == 0


def test_given_a_file_whose_footer_exceeds_the_cache_when_paged_then_it_is_read_once() -> None:
    disk, budget = CountingDisk(), MemoryBudget(1 << 30)
    cache = BlockCache(1_000, budget.share().set)
    there = RegionPlace(disk, A, FakeClock(), RegionLimits(), cache)
    region = Region.create(there, SPEC, epoch=1)
    write(region, "s", {b"k%08d" % at: (at, "x") for at in range(20_000)})
    region.maintenance.flush()
    (file,) = region.manifest.files

    for page in range(PAGES):
        list(region.reader.scan(KeyRange(b"k%08d" % (page * 3_000)), None, 1_000))
    counted = budget.bytes
    region.close()

    assert disk.reads[file.footer_bytes] == 1
    assert counted > file.footer_bytes
    assert budget.bytes == 0
