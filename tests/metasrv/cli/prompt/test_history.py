"""The file of the prompt's history: where it is, for whom, and how long it gets."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory

from metasrv.cli.prompt import history
from metasrv.cli.prompt.history import history_path, newest, prepare
from metasrv.cli.prompt.terminal import LastingHistory


def test_given_the_environment_then_the_file_is_in_the_folder_of_the_users_state(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert history_path({"XDG_STATE_HOME": "/state"}) == Path("/state/metasrv/sql_history")
    by_default = tmp_path / ".local/state/metasrv/sql_history"
    assert history_path({}) == by_default
    assert history_path({"XDG_STATE_HOME": "relative"}) == by_default


def test_given_no_file_then_one_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "sql_history"

    prepare(path)
    os.chmod(path, 0o644)
    path.write_text("x")
    prepare(path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0
    assert path.read_text() == "x"


def test_given_a_long_file_then_its_newest_entries_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(history, "BYTES_MAX", 1_000)
    path = tmp_path / "sql_history"
    kept = FileHistory(str(path))
    for number in range(100):
        kept.store_string(f"select\n{number};")

    prepare(path)

    entries = list(FileHistory(str(path)).load_history_strings())  # the newest first
    assert entries == [f"select\n{number};" for number in range(99, 99 - len(entries), -1)]
    assert 5 < len(entries) < 20
    assert path.stat().st_size <= 500
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["sql_history"]


def test_given_the_rest_of_a_cut_that_was_killed_when_cut_again_then_nothing_of_it_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(history, "BYTES_MAX", 100)
    path = tmp_path / "sql_history"
    path.write_bytes(b"\n# then\n+a;\n" * 10)
    rest = tmp_path / f"sql_history.{os.getpid()}.new"
    rest.write_bytes(b"x" * 1_000)
    rest.chmod(0o644)

    prepare(path)

    assert path.read_bytes() == b"\n# then\n+a;\n" * 4
    assert path.stat().st_mode & 0o777 == 0o600


def test_given_one_entry_that_is_too_long_then_none_is_kept() -> None:
    assert newest(b"\n# now\n+" + b"x" * 100, 50) == b""


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.chmod(0o644)])
def test_given_a_file_that_is_removed_or_opened_to_others_then_an_input_makes_it_its_owners(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "a" / "sql_history"
    prepare(path)
    kept = LastingHistory(path)
    kept.store_string("select 1;")
    before = os.umask(0o022)
    try:
        change(path)
        kept.store_string("select 2;")
    finally:
        os.umask(before)

    assert path.read_text().endswith("+select 2;\n")
    assert path.stat().st_mode & 0o777 == 0o600
