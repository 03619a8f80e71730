"""The content of a backup, judged by the rules that read nothing but the store."""

from collections.abc import Iterable
from dataclasses import dataclass

from keys.model.cluster import ClusterKey
from keys.store.kv import KeyValue
from metasrv.check.check_input import CheckInput, read_facts
from metasrv.check.rule import Scope, Violation, violations_of
from metasrv.check.rules import RULES
from metasrv_base.backup.backup_file import BackupHeader
from metasrv_base.backup.backup_reader import BackupReader
from metasrv_base.errors import Refused

STORE_RULES = tuple(rule for rule in RULES if rule.scope is Scope.STORE and not rule.deep)


@dataclass(frozen=True, slots=True)
class CheckedBackup:
    """A whole backup and the faults of its content."""

    header: BackupHeader
    facts: CheckInput
    violations: tuple[Violation, ...]


def check_backup(parts: Iterable[bytes]) -> CheckedBackup:
    """Checks the invariants of a backup. *parts* are the bytes of the file; every key is held in
    memory. Raises Refused `invalid-backup`."""
    reader = BackupReader()
    stored = [
        KeyValue(key.key.encode(), key.raw, key.created, key.revision, key.lease or 0)
        for part in parts
        for key in reader.feed(part)
    ]
    header = reader.close()
    facts = read_facts(stored, header.revision)
    newer = next((item.name for item in facts.items if item.is_newer), None)
    if newer is not None:
        raise Refused("invalid-backup", reason=f"{newer} was written by a newer metasrv")
    cluster = facts.get(ClusterKey())
    if cluster is None or cluster.cluster_id != header.cluster_id:
        raise Refused("invalid-backup", reason=f"it is not of the cluster {header.cluster_id}")
    return CheckedBackup(header, facts, violations_of(STORE_RULES, facts))
