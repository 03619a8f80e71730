"""The Python of docs/sdk.md, run as it stands against a whole cluster."""

from pathlib import Path

import pytest

from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from tests.metasrv.playground.documented_python import output_of, programs_of

pytestmark = pytest.mark.process

SAID = [
    "already-exists [{'id': 1}]",
    "{'id': 1, 'name': 'Bern', 'people': 134000} 5002 ",
    "[{'name': 'Basel'}]",
    "['towns']",
]


async def test_given_a_playground_when_the_documented_program_runs_then_it_says_what_it_should(
    tmp_path: Path,
) -> None:
    (program,) = programs_of("sdk.md")

    async with Playground(PlaygroundOptions(tmp_path, frontends=1)) as playground:
        said = output_of(program, playground.metasrv_urls[0])

    for words in SAID:
        assert words in said
