"""Real eyes: a silent node, another host, a broken inspector; each is a thing that was not seen."""

import io
import socket
from pathlib import Path

import pytest

from dataplane.region.check.inspect import main
from metasrv.check.check_input import reason_of
from metasrv.check.inspector import RealEyes
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.inspect import Inspection, InspectRequest
from tests.etcd.process import free_port
from tests.keys.model.samples import NODE


async def test_given_a_silent_node_and_server_when_asked_then_it_is_said_and_no_more() -> None:
    address = f"http://127.0.0.1:{free_port()}"
    eyes = RealEyes([address])

    with pytest.raises(Unavailable):
        await eyes.report(NODE.model_copy(update={"address": address}))

    assert await eyes.servers() == {address: f"not asked: {address}: no answer"}


async def test_given_a_node_that_was_silent_when_asked_once_more_then_it_is_not_waited_for() -> (
    None
):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        node = NODE.model_copy(update={"address": f"http://127.0.0.1:{silent.getsockname()[1]}"})
        eyes = RealEyes([], ask_deadline_ms=50)
        with pytest.raises(Unavailable):
            await eyes.report(node)
        silent.accept()[0].close()

        with pytest.raises(Unavailable) as again:
            await eyes.report(node)

        silent.settimeout(0)
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert reason_of(again.value) == f"{node.address}: no answer"


async def test_given_a_node_on_another_host_when_inspected_then_its_files_are_not_judged(
    tmp_path: Path,
) -> None:
    away = {"address": "http://10.0.0.7:4001", "root": str(tmp_path / "not_here")}

    with pytest.raises(Unavailable):
        await RealEyes([]).inspect(NODE.model_copy(update=away), InspectRequest())


async def test_given_a_root_of_this_host_that_is_gone_when_inspected_then_that_is_found(
    tmp_path: Path,
) -> None:
    node = NODE.model_copy(update={"root": str(tmp_path / "wiped")})

    said = await RealEyes([]).inspect(node, InspectRequest())

    assert said == Inspection(node_root=node.root, exists=False)


@pytest.mark.parametrize("args", [[], ["relative/root"], ["/a", "/b"]])
def test_given_wrong_arguments_when_the_inspector_runs_then_it_says_how(args: list[str]) -> None:
    assert main(args) == 2


def test_given_a_request_that_is_none_when_the_inspector_runs_then_it_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"deep": "yes"}'))

    assert main([str(tmp_path)]) == 2
