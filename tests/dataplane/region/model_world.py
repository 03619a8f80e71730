"""A region beside a plain dictionary that must hold the same rows."""

from dataclasses import dataclass, field

from dataplane.region.disk.memory_disk import MemoryDisk
from dataplane.region.engine.region import Region
from dataplane.region.format.key_range import KeyRange
from dataplane.region.place import RegionLimits
from metasrv_base.errors import Conflict
from tests.dataplane.region.borrowed import bring
from tests.dataplane.region.rig import (
    Contents,
    Row,
    by_key,
    contents,
    order,
    place,
    version_of,
    write,
)
from tests.fakes.clock import FakeClock

SMALL = RegionLimits(memtable_bytes=700)


@dataclass
class World:
    """The region, and what it must hold."""

    disk: MemoryDisk
    region: Region
    clock: FakeClock
    model: Contents = field(default_factory=dict)
    roots: list[str] = field(default_factory=lambda: ["/disk/0"])
    epoch: int = 1
    statements: int = 0

    def act(self, action: str, rows: dict[bytes, Row | None]) -> None:
        match action:
            case "write":
                self._write(rows, None)
            case "expect":
                self._expect(rows)
            case "flush":
                self.region.maintenance.flush()
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

    def _write(self, rows: dict[bytes, Row | None], expect: dict[bytes, int] | None) -> None:
        self.statements += 1
        write(self.region, f"s-{self.statements}", rows, expect)
        for key, row in rows.items():
            if row is None:
                self.model.pop(key, None)
            else:
                self.model[key] = row

    def _expect(self, rows: dict[bytes, Row | None]) -> None:
        current = {key: version_of(self.region, key) for key in rows}
        wrong = dict(current)
        wrong[next(iter(rows))] += 1
        try:
            write(self.region, f"wrong-{self.statements}", rows, wrong)
        except Conflict:
            self._write(rows, current)
        else:
            raise AssertionError("a wrong expectation was met")

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
        assert contents(self.region) == self.model
        assert by_key(self.region, *self.model, b"nothing") == self.model
        for key in [*self.model, b"nothing"]:
            resident = self.region.reader.get_resident([key], None, 1)
            assert resident is not None, "it was read a moment ago"
            assert resident.equals(self.region.reader.get([key]))
        middle = self.region.reader.scan(KeyRange(b"\x01", b"b"), [1])
        keys = [key for part in middle for key in part.column("_key").to_pylist()]
        assert keys == sorted(key for key in self.model if b"\x01" <= key < b"b")
