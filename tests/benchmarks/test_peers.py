"""A program that ours is compared with ends when the benchmark does, however that ends."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.peers import Peer, running
from tests.processes import has_ended, is_running

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
BENCHMARK = """
import sys
from pathlib import Path
from benchmarks.peers import Peer, running

with running(Peer(("sleep", "300"), Path(sys.argv[1]))) as peer:
    print(peer.pid, flush=True)
    peer.wait()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_given_a_benchmark_when_it_is_ended_then_its_peer_ends_too(
    number: signal.Signals, tmp_path: Path
) -> None:
    argv = [sys.executable, "-c", BENCHMARK, str(tmp_path / "log")]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as benchmark:
        assert benchmark.stdout is not None
        peer = int(benchmark.stdout.readline())
        assert is_running(peer)

        benchmark.send_signal(number)

    assert has_ended(peer)


def test_given_a_peer_when_it_is_left_then_it_was_told_to_end(tmp_path: Path) -> None:
    with running(Peer(("sleep", "300"), tmp_path / "log")) as peer:
        assert peer.poll() is None

    assert peer.returncode == -signal.SIGTERM


def test_given_a_peer_that_fails_when_it_is_left_then_its_words_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"

    with running(Peer(("sh", "-c", "echo no room; exit 3"), log)) as peer:
        peer.wait()

    assert (peer.returncode, log.read_text()) == (3, "no room\n")
