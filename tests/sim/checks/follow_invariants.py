"""Every server takes each version of the catalog once, in order, as the log has it."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from keys.catalog.catalog import Catalog
from keys.catalog.log.handlers import DONE, LogEvent, SnapshotEntry, UpdateHandler
from keys.model.log import CatalogUpdate, CatalogUpdateKey
from keys.value import decode
from tests.keys.catalog.snapshots import plain
from tests.sim.checks.invariants import StoreGhost

JUMPED = "a server that took a snapshot"


@dataclass
class FollowGhost:
    """The truth is the log as it was written, what was deleted of it included."""

    ghost: StoreGhost
    sometimes: Counter[str]
    wrong: Callable[[str], None]
    _updates: dict[int, CatalogUpdate] = field(default_factory=dict)
    _truth: Catalog = field(default_factory=Catalog)
    _snapshots: dict[int, dict[str, object]] = field(default_factory=dict)
    """Versions at which a server took a snapshot, as they should be."""

    def handler(self, process: str) -> UpdateHandler:
        """The handler of one process, which begins with an empty catalog."""
        taken = 0

        def handle(event: LogEvent, at_ms: int, revision: int) -> Awaitable[None]:
            nonlocal taken
            if isinstance(event, SnapshotEntry):
                self._compare(process, taken, event.catalog)
            elif event.version != taken + 1:
                self.wrong(f"log: {process} took version {event.version} behind {taken}")
            elif event != self._update(event.version):
                self.wrong(f"log: {process} took another version {event.version} than was written")
            taken = event.version
            return DONE

        return handle

    def _compare(self, process: str, taken: int, found: Catalog) -> None:
        self.sometimes[JUMPED] += 1
        if found.version <= taken:
            self.wrong(f"log: {process} took a snapshot of {found.version} behind {taken}")
        if plain(found) != self._at(found.version):
            self.wrong(f"log: {process} took another catalog than {found.version}")

    def _update(self, version: int) -> CatalogUpdate | None:
        if version not in self._updates and version in self.ghost.updates:
            raw = self.ghost.updates[version]
            self._updates[version] = decode(CatalogUpdate, raw, key=str(CatalogUpdateKey(version)))
        return self._updates.get(version)

    def _at(self, version: int) -> dict[str, object]:
        if version not in self._snapshots:
            truth = self._truth if self._truth.version <= version else Catalog()
            for number in range(truth.version + 1, version + 1):
                update = self._update(number)
                assert update is not None, "the log is written before it is read"
                truth = truth.apply(update, self.ghost.revisions[number])
            self._truth = truth
            self._snapshots[version] = plain(truth)
        return self._snapshots[version]
