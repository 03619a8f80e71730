"""A backup is judged by what its keys say of each other."""

import pytest

from keys.store.kv import Get
from keys.store.scan import scan
from metasrv.check.check_backup import CheckedBackup, check_backup
from metasrv.check.collect import EVERYTHING
from metasrv_base.backup.backup_file import BackupHeader, BackupKey
from metasrv_base.backup.backup_writer import BackupWriter
from metasrv_base.errors import Refused
from tests.metasrv.check.breaking.break_keys import NAME
from tests.metasrv.check.cluster import CLUSTER_ID, DEADLINE_MS, Cluster


async def backup_of(cluster: Cluster, cluster_id: str = CLUSTER_ID, without: bytes = b"") -> bytes:
    stored, revision = await scan(cluster.kv, EVERYTHING, deadline_ms=DEADLINE_MS)
    kept = [item for item in stored if item.key != without]
    writer = BackupWriter()
    header = BackupHeader(
        cluster_id=cluster_id, revision=revision, keys=len(kept), made_at_ms=1, made_by="1"
    )
    begun = writer.begin(header) + writer.keys(BackupKey.of(*item) for item in kept)
    return begun + writer.end()


async def test_given_a_cluster_in_order_then_its_backup_has_no_fault(cluster: Cluster) -> None:
    checked = check_backup([await backup_of(cluster)])

    assert isinstance(checked, CheckedBackup)
    assert checked.violations == ()
    assert (checked.header.cluster_id, len(checked.facts.infos())) == (CLUSTER_ID, 2)


async def test_given_a_key_that_is_missing_then_it_is_named(cluster: Cluster) -> None:
    checked = check_backup([await backup_of(cluster, without=bytes(NAME))])

    assert [(one.rule, one.subject) for one in checked.violations] == [("table-name", str(NAME))]


async def test_given_a_value_of_a_newer_server_then_refused_by_its_key(cluster: Cluster) -> None:
    (stored,) = (await cluster.kv.range(Get(bytes(NAME)), deadline_ms=DEADLINE_MS)).items
    newer = stored.value.replace(b'"format":1', b'"format":9', 1)
    await cluster.put_raw(bytes(NAME), newer)

    with pytest.raises(Refused) as raised:
        check_backup([await backup_of(cluster)])
    assert str(NAME) in str(raised.value.facts["reason"])


async def test_given_a_header_of_another_cluster_then_refused(cluster: Cluster) -> None:
    with pytest.raises(Refused) as raised:
        check_backup([await backup_of(cluster, cluster_id="another")])
    assert "another" in str(raised.value.facts["reason"])
