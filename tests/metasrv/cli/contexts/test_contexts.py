"""The file of contexts: made, changed, refused; nothing of a token in it."""

import json
import stat
from pathlib import Path

import pytest
import typer

from metasrv.cli.contexts.contexts import (
    VARIABLE,
    Contexts,
    NamedService,
    context_in_use,
    contexts_path,
    read_contexts,
    write_contexts,
)

PROD = NamedService("https://metasrv.example:4620", "/etc/metasrv/token")


def environment(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder)}


def test_given_contexts_when_written_and_read_then_they_are_the_same_for_their_owner_alone(
    tmp_path: Path,
) -> None:
    contexts = Contexts().with_context("prod", PROD).using("prod")

    write_contexts(environment(tmp_path), contexts)

    path = contexts_path(environment(tmp_path))
    assert read_contexts(environment(tmp_path)) == contexts
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["contexts.json"]


def test_given_no_file_then_there_is_no_context(tmp_path: Path) -> None:
    assert read_contexts(environment(tmp_path)) == Contexts()
    assert context_in_use(environment(tmp_path)) is None


def test_given_the_variable_then_it_goes_before_the_file(tmp_path: Path) -> None:
    write_contexts(environment(tmp_path), Contexts().with_context("a", PROD).using("a"))

    assert context_in_use(environment(tmp_path)) == "a"
    assert context_in_use({**environment(tmp_path), VARIABLE: "b"}) == "b"


def test_given_the_context_in_use_when_removed_then_none_is_used() -> None:
    contexts = Contexts().with_context("a", PROD).with_context("b", PROD).using("a")

    assert contexts.without("a") == Contexts(None, {"b": PROD})
    assert contexts.without("b") == Contexts("a", {"a": PROD})


def test_given_a_name_that_none_has_then_the_near_one_is_suggested() -> None:
    with pytest.raises(typer.BadParameter, match=r"no context prd; did you mean prod\?"):
        Contexts().with_context("prod", PROD).get("prd")


@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "x" * 65])
def test_given_what_is_no_name_then_it_is_refused(name: str) -> None:
    with pytest.raises(typer.BadParameter, match="is no name"):
        Contexts().with_context(name, PROD)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": 2, "current": null, "contexts": {}}',
        '{"format": 1, "current": null, "contexts": []}',
        '{"format": 1, "current": null, "contexts": {"a": {}}}',
    ],
)
def test_given_a_file_of_another_form_then_the_refusal_names_it(tmp_path: Path, text: str) -> None:
    path = contexts_path(environment(tmp_path))
    path.parent.mkdir()
    path.write_text(text)

    with pytest.raises(typer.BadParameter, match=f"{path} is no file of contexts"):
        read_contexts(environment(tmp_path))


def test_given_a_context_then_the_stored_form_is_this(tmp_path: Path) -> None:
    write_contexts(environment(tmp_path), Contexts("prod", {"prod": PROD}))

    assert json.loads(contexts_path(environment(tmp_path)).read_text()) == {
        "format": 1,
        "current": "prod",
        "contexts": {
            "prod": {"metasrv": "https://metasrv.example:4620", "token_file": "/etc/metasrv/token"}
        },
    }
