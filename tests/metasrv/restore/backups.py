"""Backups of the cluster that `metasrv check` is tested on, and empty stores to restore them to."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from keys.key import Key
from keys.store.kv import Kv
from keys.store.memory import MemoryKv
from keys.store.scan import scan
from keys.value import StoredModel, encode
from metasrv.check.check_input import CheckInput, read_facts
from metasrv.check.collect import EVERYTHING
from metasrv.check.rule import Scope, Violation, violations_of
from metasrv.check.rules import RULES
from metasrv.restore.restore import RestoreDeps
from metasrv_base.backup.backup_file import BackupHeader, BackupKey
from metasrv_base.backup.backup_writer import BackupWriter
from metasrv_base.ids import ProcedureId
from tests.fakes.clock import FakeClock
from tests.metasrv.check.cluster import CLUSTER_ID, DEADLINE_MS

V = TypeVar("V", bound=StoredModel)
PIECE = 257


@dataclass
class CountedIds:
    count: int = 0

    def procedure_id(self) -> ProcedureId:
        self.count += 1
        return ProcedureId(f"019bbbbb-0000-7abc-8def-{self.count:012}")


@dataclass(frozen=True)
class Backup:
    """A backup, and the facts of the store that it was made of."""

    facts: CheckInput

    @property
    def data(self) -> bytes:
        return self.file()

    @property
    def keys(self) -> list[BackupKey]:
        return [BackupKey.of(*item.raw) for item in self.facts.items]

    def file(
        self,
        made_at_ms: int = 1,
        more: Mapping[Any, StoredModel] | None = None,
        of: str = CLUSTER_ID,
    ) -> bytes:
        """*more*: keys that are there too, or have another value."""
        added = {str(key): encode(value) for key, value in (more or {}).items()}
        kept = [key for key in self.keys if key.key not in added]
        kept += [BackupKey.of(key.encode(), value, 1, 1) for key, value in added.items()]
        ordered = sorted(kept, key=lambda key: key.key.encode())
        return file_of(ordered, self.facts.revision, made_at_ms, of)

    def value(self, key: Key[V]) -> V:
        value = self.facts.get(key)
        assert value is not None
        return value


async def backup_of(kv: Kv) -> Backup:
    stored, revision = await scan(kv, EVERYTHING, deadline_ms=DEADLINE_MS)
    return Backup(read_facts(stored, revision))


def file_of(
    keys: Iterable[BackupKey], revision: int, made_at_ms: int = 1, of: str = CLUSTER_ID
) -> bytes:
    every = list(keys)
    header = BackupHeader(
        cluster_id=of,
        revision=revision,
        keys=len(every),
        made_at_ms=made_at_ms,
        made_by="1",
    )
    writer = BackupWriter()
    return writer.begin(header) + writer.keys(every) + writer.end()


def pieces(data: bytes) -> Callable[[], Iterable[bytes]]:
    """The file as it is read, in small pieces."""
    return lambda: (data[at : at + PIECE] for at in range(0, len(data), PIECE))


@dataclass
class Target:
    """An empty store beside the cluster's."""

    clock: FakeClock = field(default_factory=FakeClock)
    ids: CountedIds = field(default_factory=CountedIds)
    kv: MemoryKv = field(init=False)

    def __post_init__(self) -> None:
        self.kv = MemoryKv(self.clock)

    @property
    def deps(self) -> RestoreDeps:
        return RestoreDeps(self.kv, self.clock, self.ids)

    @property
    def stored(self) -> dict[str, bytes]:
        return {item.key.decode(): item.value for item in self.kv.dump()}

    def facts(self) -> CheckInput:
        return read_facts(self.kv.dump(), self.kv.revision)

    def violations(self) -> list[Violation]:
        """The faults that `metasrv check` finds in the store alone, warnings too."""
        rules = tuple(rule for rule in RULES if rule.scope is Scope.STORE)
        return list(violations_of(rules, self.facts()))
