"""A command that is told no URL asks the playground that runs here."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from metasrv.cli.environment import FILE, FOLDER, FOLDER_VARIABLE, playground_url
from metasrv.playground.document import NAME
from metasrv.playground.holder import LOCK, PlaygroundHolder, record_of, this_process
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

HERE = this_process()
GONE = replace(HERE, started_ticks=HERE.started_ticks + 1)
"""A process that had this one's id before it."""


def written(
    folder: Path, holder: PlaygroundHolder, url: str = "http://127.0.0.1:1"
) -> dict[str, str]:
    """The environment in which a playground of that folder is looked for."""
    (folder / FILE).write_text(json.dumps({"metasrv": [url]}))
    (folder / LOCK).write_bytes(record_of(holder))
    return {FOLDER_VARIABLE: str(folder)}


def test_given_a_playground_when_it_runs_then_its_url_is_known(tmp_path: Path) -> None:
    assert playground_url(written(tmp_path, HERE)) == "http://127.0.0.1:1"
    assert playground_url(written(tmp_path, GONE)) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"metasrv": 1}', '{"metasrv": []}'])
def test_given_a_file_that_is_another_when_read_then_there_is_no_playground(
    tmp_path: Path, text: str
) -> None:
    environment = written(tmp_path, HERE)
    (tmp_path / FILE).write_text(text)

    assert playground_url(environment) is None


def test_given_the_names_that_are_repeated_to_import_less_then_they_are_the_playgrounds_own() -> (
    None
):
    assert FILE == NAME
    assert FOLDER == ".run/playground"


def test_given_no_url_when_a_playground_runs_then_it_is_asked(
    run: Run, rest: Rest, tmp_path: Path
) -> None:
    rest.answers["GET", "/v1/catalogs"] = (200, {"catalogs": [], "catalog_version": 1})

    there = run("catalog", "list", **written(tmp_path, HERE, rest.url))
    gone = run("catalog", "list", **written(tmp_path, GONE, rest.url))

    assert (there.exit_code, gone.exit_code) == (0, 2)
    assert len(rest.asked) == 1
    assert "no playground runs here" in gone.stderr
