"""A region with indexes against dicts, through any sequence of batches, floors and failovers."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.region.compaction import compaction
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine import group
from dataplane.region.engine.region import Region
from dataplane.region.format.families import ROWS
from dataplane.region.format.schema import RegionSchema
from dataplane.region.place import RegionLimits
from metasrv_base.errors import Conflict, Refused
from tests.dataplane.region.borrowed import bring
from tests.dataplane.region.entries import Place, Value, entries_of, mixed, version_in
from tests.dataplane.region.rig import SPEC, Contents, contents, header, order, place
from tests.fakes.clock import FakeClock

INDEXES = (1, 2)
TOMBSTONES_MIN = st.sampled_from([1, 2, group.TOMBSTONES_MIN])
KEYS = st.sampled_from([b"a", b"b", b"c", b"ca"])
PLACES = st.tuples(st.sampled_from([ROWS, *INDEXES]), KEYS)
BATCHES = st.dictionaries(PLACES, st.one_of(st.none(), KEYS), min_size=1, max_size=5)
ACTIONS: st.SearchStrategy[tuple[str, dict[Place, bytes | None]]] = st.one_of(
    st.tuples(st.sampled_from(["write", "expect"]), BATCHES),
    st.tuples(
        st.sampled_from(
            ["flush", "merge", "floor", "drop", "reopen", "move", "adopt", "power loss"]
        ),
        st.just({}),
    ),
)
SMALL = RegionLimits(memtable_bytes=1_500)


@dataclass
class World:
    """The region, and what it must hold in each family, in order of nothing."""

    disk: MemoryDisk
    region: Region
    clock: FakeClock
    rows: Contents = field(default_factory=dict)
    entries: dict[int, dict[bytes, bytes]] = field(default_factory=lambda: {1: {}, 2: {}})
    roots: list[str] = field(default_factory=lambda: ["/disk/0"])
    epoch: int = 1
    statements: int = 0
    floor: int = 1

    def act(self, action: str, wanted: dict[Place, bytes | None]) -> None:
        match action:
            case "write" | "expect":
                self._write(wanted, action == "expect")
            case "flush":
                self.region.maintenance.flush()
            case "merge":
                self.region.maintenance.flush()
                self.region.maintenance.compact()
            case "floor":
                self.floor += 1
                self._tell(frozenset())
            case "drop":
                self.entries.pop(2, None)
                self._tell(frozenset({2}))
            case "adopt":
                self._adopt()
            case "move":
                self.epoch += 1
                self.roots.append(f"/disk/{self.epoch}")
                self._open()
            case _:
                if action == "power loss":
                    self.disk.store.crash(torn=self.statements)
                self._open()

    def _tell(self, dead: frozenset[int]) -> None:
        news = RegionSchema(self.floor, self.floor, SPEC.columns, frozenset(INDEXES) - dead, dead)
        self.region.set_schema(news)

    def _write(self, wanted: dict[Place, bytes | None], expects: bool) -> None:
        self.statements += 1
        values: dict[Place, Value] = {}
        for (family, key), expected in wanted.items():
            is_row = family == ROWS and expected is not None
            values[family, key] = (self.statements, None) if is_row else expected
        if any(family != ROWS and family not in self.entries for family, _ in values):
            self._must_refuse(values, Refused)
            return
        expect = {at: version_in(self.region, at) for at in values} if expects else None
        if expect is not None:
            wrong = {at: version + 1 for at, version in expect.items()}
            self._must_refuse(values, Conflict, wrong)
        head = header(f"s-{self.statements}", self.region.opening.epoch, self.floor)
        (answer,) = self.region.writer.apply([(head, mixed(values, expect))])
        assert not isinstance(answer, Exception), answer
        for (family, key), value in values.items():
            held = self.rows if family == ROWS else self.entries[family]
            held.pop(key, None)
            if isinstance(value, bytes):
                self.entries[family][key] = value
            elif value is not None:
                self.rows[key] = value

    def _must_refuse(
        self,
        values: dict[Place, Value],
        refusal: type[Exception],
        expect: dict[Place, int] | None = None,
    ) -> None:
        head = header(f"wrong-{self.statements}", self.region.opening.epoch, self.floor)
        (answer,) = self.region.writer.apply([(head, mixed(values, expect))])
        assert isinstance(answer, refusal)

    def _adopt(self) -> None:
        attempt = f"attempts/{self.statements}-{self.epoch}"
        if self.region.borrowed().files or self.region.borrowed().segments:
            self.statements += 1
            files = bring(self.disk, self.region, attempt)
            self.region.file_ingest.adopt(f"p-{self.statements}", attempt, files)
            for root in self.roots[:-1]:
                self.disk.remove_tree(root)
            self.roots = self.roots[-1:]

    def _open(self) -> None:
        *borrows, own = self.roots
        where = place(self.disk, own, self.clock, SMALL)
        self.region = Region.open(where, order(self.epoch, *borrows))

    def check(self) -> None:
        assert self.region.schema_floor == self.floor
        assert contents(self.region) == self.rows
        for index, entries in self.entries.items():
            assert entries_of(self.region, index) == entries
            expected = [(key, entries[key]) for key in sorted(entries) if entries[key] in self.rows]
            found = [
                pair
                for part in self.region.reader.scan_index(index)
                for pair in zip(
                    part.column("_entry").to_pylist(), part.column("_key").to_pylist(), strict=True
                )
            ]
            assert found == expected
        stale = header("stale", self.region.opening.epoch, self.floor - 1)
        (answer,) = self.region.writer.apply([(stale, mixed({(ROWS, b"a"): None}))])
        assert isinstance(answer, Conflict)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(ACTIONS, max_size=25), TOMBSTONES_MIN)
def test_given_any_history_with_indexes_when_read_then_each_family_holds_what_a_dict_would(
    history: list[tuple[str, dict[Place, bytes | None]]], tombstones_min: int
) -> None:
    """*tombstones_min*: so many deletes of a family are logged without values."""
    disk, clock = MemoryDisk(MemoryStore()), FakeClock()
    region = Region.create(place(disk, "/disk/0", clock, SMALL), SPEC, epoch=1)
    region.set_schema(RegionSchema(1, 1, SPEC.columns, frozenset(INDEXES), frozenset()))
    world = World(disk, region, clock)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "FAN_IN", 2)  # so that a short history merges
        patch.setattr(group, "TOMBSTONES_MIN", tombstones_min)
        for action, wanted in history:
            world.act(action, wanted)
            clock.advance(1)
            world.check()
