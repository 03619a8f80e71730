"""`metasrv token new`, and where the client commands find their token."""

from pathlib import Path

from metasrv_base.token import read_token, read_tokens
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

NOBODY: dict[str, list[str]] = {"nodes": []}


def test_given_a_name_when_a_token_is_made_then_both_files_are_secret_and_agree(
    run: Run, tmp_path: Path
) -> None:
    files = ("--token-file", str(tmp_path / "t"), "--tokens-file", str(tmp_path / "all"))

    done = run("token", "new", "anna", *files)
    again = run("token", "new", "anna", *files)

    assert done.exit_code == 0, done.output
    token = read_token(tmp_path / "t")
    assert read_tokens(tmp_path / "all").holder(token) == "anna"
    assert token not in done.output
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("t", "all")} == {0o600}
    assert again.exit_code == 2


def test_given_a_token_file_when_a_command_asks_then_it_is_shown(
    run: Run, rest: Rest, tmp_path: Path
) -> None:
    run(
        "token",
        "new",
        "anna",
        "--token-file",
        str(tmp_path / "t"),
        "--tokens-file",
        str(tmp_path / "all"),
    )
    rest.answers["GET", "/v1/nodes"] = (200, NOBODY)

    words = ("node", "list", "--metasrv", rest.url)
    by_file = run(*words, METASRV_TOKEN_FILE=str(tmp_path / "t"))
    by_value = run(*words, METASRV_TOKEN="a-token-of-more-than-twenty-characters")
    bad = run(*words, METASRV_TOKEN_FILE=str(tmp_path / "missing"))

    assert (by_file.exit_code, by_value.exit_code, bad.exit_code) == (0, 0, 2)
    assert [asked.bearer for asked in rest.asked] == [
        f"Bearer {read_token(tmp_path / 't')}",
        "Bearer a-token-of-more-than-twenty-characters",
    ]
