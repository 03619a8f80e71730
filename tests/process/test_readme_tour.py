"""The commands of the README's tour, in order, on a real playground of its own."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from metasrv.playground.ports import free_ports
from metasrv_base.rng import SystemRng
from tests.process.pages.commands import commands_of

ROOT = Path(__file__).parents[2]
METASRV = ".venv/bin/metasrv"
COMMAND_S_MAX = 400


def tour() -> Sequence[str]:
    """Its commands, one a line; `make demo` is a part of the tests by itself."""
    page = commands_of(ROOT / "README.md")
    (block,) = (command.text for command in page if f"{METASRV} sql" in command.text)
    return [line for line in block.splitlines() if not line.startswith("make demo")]


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(1_200)
def test_given_the_tour_when_its_commands_run_then_each_does_what_the_page_says(
    tmp_path: Path,
) -> None:
    commands = tour()
    printed = dict[str, str]()
    with shell(tmp_path) as run:
        for command in commands:
            printed[command] = run(command)

    text = [printed[command] for command in commands]
    assert "1 change made" in text[1]
    assert re.search(r"^cities +1024$", text[2], re.MULTILINE)
    assert "no difference: the catalog is as declared" in text[3]
    assert "name: cities" in (tmp_path / "schema.yaml").read_text()
    assert re.search(r"\bmain +public +cities\b", text[4])


def test_given_the_readme_then_its_tour_goes_from_a_cluster_by_sql_and_files_to_views() -> None:
    starts = ["playground start", "sql -c", "sql ", "export > schema.yaml", "show tables"]

    assert len(tour()) == len(starts)
    for line, start in zip(tour(), starts, strict=True):
        assert line.startswith(f"{METASRV} {start}")


@contextmanager
def shell(folder: Path) -> Iterator[Callable[[str], str]]:
    """Commands run in *folder*, with the checkout's `.venv`, and on a cluster that ends with it."""
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / "home").mkdir()
    (port,) = free_ports(1, SystemRng())
    env = {
        **os.environ,
        "HOME": str(folder / "home"),
        "METASRV_PLAYGROUND_DATA_DIR": str(folder / "cluster"),
        "METASRV_PLAYGROUND_PORT": str(port),
        "METASRV_URL": f"http://127.0.0.1:{port}",
    }

    def run(command: str) -> str:
        # Not at a terminal: `metasrv sql` takes its text from stdin.
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            input="SHOW TABLES;",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=env,
            timeout=COMMAND_S_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    try:
        yield run
    finally:
        run(f"{METASRV} playground stop")
