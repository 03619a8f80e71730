"""A command that is told no URL asks the playground that runs here."""

import json
import os
from pathlib import Path

import pytest

from metasrv.cli.playground_url import FILE, FOLDER, FOLDER_VARIABLE, playground_url
from metasrv.playground.document import NAME
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

GONE = 2**22 + 1
"""No process has this id: it is above the most that Linux gives."""


def written(folder: Path, pid: int, url: str = "http://127.0.0.1:1") -> dict[str, str]:
    """The environment in which a playground of that folder is looked for."""
    document = {"metasrv": [url], "pids": {"metasrv": {"m-1": pid}}}
    (folder / FILE).write_text(json.dumps(document))
    return {FOLDER_VARIABLE: str(folder)}


def test_given_a_playground_when_it_runs_then_its_url_is_known(tmp_path: Path) -> None:
    assert playground_url(written(tmp_path, os.getpid())) == "http://127.0.0.1:1"
    assert playground_url(written(tmp_path, GONE)) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"metasrv": 1, "pids": {"metasrv": []}}'])
def test_given_a_file_that_is_another_when_read_then_there_is_no_playground(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / FILE).write_text(text)

    assert playground_url({FOLDER_VARIABLE: str(tmp_path)}) is None


def test_given_the_names_that_are_repeated_to_import_less_then_they_are_the_playgrounds_own() -> (
    None
):
    assert FILE == NAME
    assert FOLDER == ".run/playground"


def test_given_no_url_when_a_playground_runs_then_it_is_asked(
    run: Run, rest: Rest, tmp_path: Path
) -> None:
    rest.answers["GET", "/v1/catalogs"] = (200, {"catalogs": [], "catalog_version": 1})

    there = run("catalog", "list", **written(tmp_path, os.getpid(), rest.url))
    gone = run("catalog", "list", **written(tmp_path, GONE, rest.url))

    assert (there.exit_code, gone.exit_code) == (0, 2)
    assert len(rest.asked) == 1
    assert "no playground runs here" in gone.stderr
