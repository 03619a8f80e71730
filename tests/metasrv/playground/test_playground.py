"""The playground as a library, with etcd alone: started, killed, started again, cleared."""

import json
import signal
from pathlib import Path

import httpx
import pytest

from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv_base.errors import Conflict, Refused, Unavailable
from tests.processes import is_running

pytestmark = pytest.mark.process


def etcd_alone(folder: Path, *, reset: bool = False) -> PlaygroundOptions:
    return PlaygroundOptions(folder, metasrvs=0, datanodes=0, reset=reset)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def test_given_a_playground_when_left_then_nothing_of_it_runs(tmp_path: Path) -> None:
    async with Playground(etcd_alone(tmp_path)) as playground:
        pid = playground.pid("etcd")
        document = json.loads((tmp_path / "playground.json").read_text())
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            health = await client.get(playground.etcd_urls[0] + "/health")
        alive = is_running(pid)

    assert alive
    assert health.status_code == 200
    assert document["pids"]["etcd"] == pid
    assert document["restart"]["etcd"][1:] == list(playground.programs[0].argv[1:])
    assert not is_running(pid)
    assert not (tmp_path / "playground.json").exists()


async def test_given_a_killed_program_when_restarted_then_it_serves_at_the_same_address(
    tmp_path: Path,
) -> None:
    async with Playground(etcd_alone(tmp_path)) as playground:
        old, urls = playground.pid("etcd"), playground.etcd_urls
        await playground.kill("etcd")
        dead = not is_running(old)
        await playground.restart("etcd")
        new = playground.pid("etcd")
        document = json.loads((tmp_path / "playground.json").read_text())

    assert dead
    assert new != old
    assert (playground.etcd_urls, document["pids"]["etcd"]) == (urls, new)


async def test_given_a_stopped_program_when_left_then_it_is_ended_too(tmp_path: Path) -> None:
    async with Playground(etcd_alone(tmp_path)) as playground:
        pid = playground.pid("etcd")
        await playground.kill("etcd", signal.SIGSTOP)

    assert not is_running(pid)


async def test_given_a_running_playground_when_another_takes_its_folder_then_it_is_refused(
    tmp_path: Path,
) -> None:
    async with Playground(etcd_alone(tmp_path)):
        with pytest.raises(Conflict, match="object-locked"):
            async with Playground(etcd_alone(tmp_path, reset=True)):
                pass


async def test_given_a_reset_then_only_its_own_folders_are_deleted(tmp_path: Path) -> None:
    for name in ("dn-7", "m-1", "mine", "dn-x"):
        (tmp_path / name).mkdir()
    (tmp_path / "notes").write_text("mine")

    async with Playground(etcd_alone(tmp_path, reset=True)):
        left = names_in(tmp_path)

    assert {"mine", "dn-x", "notes", "etcd"} <= left
    assert not {"dn-7", "m-1"} & left


async def test_given_a_program_that_cannot_run_then_its_last_words_are_told(tmp_path: Path) -> None:
    (tmp_path / "etcd").mkdir()
    (tmp_path / "etcd" / "data").write_text("not a folder")

    with pytest.raises(Unavailable) as raised:
        async with Playground(etcd_alone(tmp_path)):
            pass

    assert raised.value.facts["what"] == "etcd"
    assert raised.value.facts["told"]


async def test_given_settings_that_cannot_be_then_nothing_is_touched(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        async with Playground(PlaygroundOptions(tmp_path / "new", metasrvs=0, datanodes=1)):
            pass

    assert not (tmp_path / "new").exists()
