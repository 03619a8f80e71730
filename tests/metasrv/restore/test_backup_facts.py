"""The first reading of a backup."""

from metasrv.restore.backup_facts import read_backup_facts
from tests.metasrv.check.cluster import CLUSTER_ID
from tests.metasrv.restore.backups import Backup, pieces


def test_given_a_backup_when_read_then_its_numbers_and_all_of_its_progress(backup: Backup) -> None:
    told: list[tuple[int, int]] = []

    facts = read_backup_facts(pieces(backup.data)(), lambda done, total: told.append((done, total)))

    assert facts.source.cluster_id == CLUSTER_ID
    assert facts.keys == len(backup.keys) == told[-1][0] == told[-1][1]
    assert (facts.counts["TableInfo"], facts.regions) == (2, 3)
    assert facts.nodes == ("dn-1", "dn-2")
    assert [one.kind for one in facts.procedures] == ["create_schema"]
