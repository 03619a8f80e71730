"""`metasrv backup restore`: the plan, refusals by exit code, and a restore to a real etcd."""

import json
from pathlib import Path

import pytest

from keys.model.tables import TableRouteKey
from metasrv.cli.tools.check import CLEAN
from metasrv_base.wire.node.adoption import FoundRoot, Inventory
from tests.metasrv.check.cluster import CLUSTER_ID, FLIGHTS
from tests.metasrv.cli.conftest import Run
from tests.metasrv.restore.backups import Backup
from tests.metasrv.restore.conftest import backup, every_backup

__all__ = ["backup", "every_backup"]


@pytest.fixture
def file(backup: Backup, tmp_path: Path) -> Path:
    path = tmp_path / "cluster.backup.gz"
    path.write_bytes(backup.data)
    return path


def test_given_a_file_when_planned_then_it_is_told_and_no_etcd_is_asked(
    run: Run, file: Path
) -> None:
    as_json = run("backup", "restore", str(file), "--plan", "--json")
    as_text = run("backup", "restore", str(file), "--plan")

    said = json.loads(as_json.stdout)
    assert (said["cluster_id"], said["tables"], said["regions"]) == (CLUSTER_ID, 2, 3)
    assert said["nodes"] == ["dn-1", "dn-2"]
    assert [one["kind"] for one in said["procedures"]] == ["create_schema"]
    assert "dn-1, dn-2" in as_text.stdout


def test_given_no_place_or_no_backup_then_wrong_usage_or_refused(run: Run, file: Path) -> None:
    nowhere = run("backup", "restore", str(file))
    file.write_bytes(file.read_bytes()[:-1])
    cut = run("backup", "restore", str(file), "--plan", "--json")
    missing = run("backup", "restore", str(file) + "x", "--plan")

    assert (nowhere.exit_code, "--etcd" in nowhere.stderr) == (2, True)
    assert (cut.exit_code, json.loads(cut.stderr)["code"]) == (1, "invalid-backup")
    assert missing.exit_code == 2


def test_given_an_inventory_when_planned_then_what_the_node_holds_is_told_with_it(
    run: Run, file: Path, backup: Backup, tmp_path: Path
) -> None:
    first, _ = backup.value(TableRouteKey(FLIGHTS)).region_routes
    moved = FoundRoot(region_id=first.region_id, root="/other", manifest_epoch=2, fence_epoch=2)
    page = Inventory(node_id="dn-1", cluster_id=CLUSTER_ID, roots=[moved], dropped=[])
    held = tmp_path / "dn-1.json"
    held.write_text(page.model_dump_json() + "\n")

    as_json = run("backup", "restore", str(file), "--plan", "--inventory", str(held), "--json")
    as_text = run("backup", "restore", str(file), "--plan", "--inventory", str(held))

    said = json.loads(as_json.stdout)["inventories"]
    assert (said["of"], said["missing"]) == (["dn-1"], ["dn-2"])
    assert said["regions"] == {"missing": 2, "moved": 1}
    assert {each["fate"] for each in said["findings"]} == {"missing", "moved"}
    assert "no inventory of dn-2" in as_text.stdout
    assert "/other" in as_text.stdout


def test_given_an_inventory_that_is_cut_or_foreign_then_it_is_refused_and_no_etcd_is_asked(
    run: Run, file: Path, tmp_path: Path
) -> None:
    held, nowhere = tmp_path / "dn-1.json", ("--etcd", "http://127.0.0.1:1", "--prefix", "x/")
    page = Inventory(node_id="dn-1", cluster_id="other", roots=[], dropped=[])
    for text in (page.model_dump_json(), page.model_dump_json()[:-1], ""):
        held.write_text(text)
        refused = run("backup", "restore", str(file), *nowhere, "--inventory", str(held), "--json")
        assert (refused.exit_code, json.loads(refused.stderr)["code"]) == (1, "invalid-request")
    missing = run("backup", "restore", str(file), "--plan", "--inventory", str(held) + "x")

    assert (missing.exit_code, "dn-1.jsonx" in missing.stderr) == (2, True)


@pytest.mark.etcd
def test_given_an_empty_prefix_when_restored_then_a_cluster_and_no_second_one(
    run: Run, file: Path, etcd: str, etcd_prefix: bytes
) -> None:
    where = ("--etcd", etcd, "--prefix", etcd_prefix.decode())

    made = run("backup", "restore", str(file), *where, "--json")
    again = run("backup", "restore", str(file), *where)
    checked = run("check", *where, "--json")

    said = json.loads(made.stdout)
    assert made.exit_code == 0, made.output
    assert (said["restored_from"], said["nodes_to_adopt"]) == (CLUSTER_ID, ["dn-1", "dn-2"])
    assert said["cluster_id"] != CLUSTER_ID
    assert (again.exit_code, "not empty" in again.stderr) == (1, True)
    found = {one["rule"] for one in json.loads(checked.stdout)["found"]}
    assert (checked.exit_code, found - {"unseen", "folder-orphan"}) == (CLEAN, {"node-adopted"})
