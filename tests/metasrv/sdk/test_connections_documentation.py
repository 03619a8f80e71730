"""The Python of docs/sdk.md, run as it stands against a whole cluster."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[3]
SAID = [
    "already-exists [{'id': 1}]",
    "{'id': 1, 'name': 'Bern', 'people': 134000} 5002 ",
    "[{'name': 'Basel'}]",
    "['towns']",
]


def run(code: str, url: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "METASRV_URL": url, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_given_a_playground_when_the_documented_program_runs_then_it_says_what_it_should(
    tmp_path: Path,
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sdk.md").read_text(), re.DOTALL)

    async with Playground(PlaygroundOptions(tmp_path, frontends=1)) as playground:
        said = run(code, playground.metasrv_urls[0])

    for words in SAID:
        assert words in said
