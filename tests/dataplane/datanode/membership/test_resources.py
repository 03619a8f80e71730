"""The machine as a node reads it, and what it says where it cannot."""

from pathlib import Path

import pytest

from dataplane.datanode.membership import resources
from dataplane.datanode.membership.resources import LocalMachine
from metasrv_base.errors import Unavailable


async def test_given_this_machine_when_read_then_it_has_memory_and_a_disk(tmp_path: Path) -> None:
    (tmp_path / "regions" / "1").mkdir(parents=True)
    machine = LocalMachine(str(tmp_path))

    read = await machine.resources()

    assert read.memory_bytes >= read.memory_free_bytes > 0
    assert read.disk_bytes >= read.disk_free_bytes >= 0
    assert await machine.folders() == ("1",)


async def test_given_a_root_whose_mount_is_away_when_read_then_it_is_not_ready(
    tmp_path: Path,
) -> None:
    away = str(tmp_path / "away")

    with pytest.raises(Unavailable) as refused:
        await LocalMachine(away).resources()

    assert refused.value.facts["path"] == away
    assert refused.value.facts["errno"] == "ENOENT"
    assert await LocalMachine(away).folders() == ()


async def test_given_figures_that_cannot_be_read_when_asked_for_then_it_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "MEMORY", tmp_path)
    (tmp_path / "regions").touch()

    for ask in (LocalMachine(str(tmp_path)).resources, LocalMachine(str(tmp_path)).folders):
        with pytest.raises(Unavailable) as refused:
            await ask()
        assert refused.value.code == "not-ready"
