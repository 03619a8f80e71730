"""The commands of docs/tutorial.md and docs/rest.md, run on a real playground."""

import os
import sys
from pathlib import Path

import pytest

from tests.process.pages.commands import agrees, commands_of
from tests.process.pages.terminals import BusyTerminal, Shell

ROOT = Path(__file__).parents[2]
PAGES = ("tutorial", "rest")


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("page", PAGES)
def test_given_a_page_when_its_commands_run_then_each_prints_what_the_page_shows(
    page: str, tmp_path: Path
) -> None:
    """The pages keep their files in the home folder, so a folder of its own is all they need."""
    first, *others = commands_of(ROOT / "docs" / f"{page}.md")
    home = tmp_path / "home"
    home.mkdir()
    # Another HOME may lead to another `python3`, for which `make setup` would build .venv anew.
    env = {**os.environ, "HOME": str(home), "PYTHON": sys.executable}

    assert first.stays
    with BusyTerminal(first, tmp_path / "first", cwd=ROOT, env=env) as playground:
        playground.wait_until_it_prints_what_the_page_shows()
        with Shell(tmp_path, cwd=ROOT, env=env) as shell:
            printed = [(command, shell.run(command)) for command in others]

    wrong = [
        f"line {command.line} shows\n{command.shown}\nand it prints\n{output}"
        for command, output in printed
        if command.shown is not None and not agrees(command.shown, output)
    ]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES)
def test_given_a_page_then_it_shows_the_output_of_most_commands(page: str) -> None:
    commands = commands_of(ROOT / "docs" / f"{page}.md")

    assert len(commands) >= 12
    assert sum(command.shown is not None for command in commands) > len(commands) * 2 / 3


def test_given_a_page_when_read_then_commands_and_outputs_are_paired_in_order(
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# P\n\n```sh\na\n```\n\n```sh\nb\nc\n```\ntext\n```json\n{}\n```\n```py\n```\n"
    )

    commands = commands_of(page)

    assert [(one.line, one.text, one.shown) for one in commands] == [
        (4, "a\n", None),
        (8, "b\nc\n", "{}\n"),
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "is_alike"),
    [
        ("a  1.5 s", "a 0.25 s\n", True),
        ("url http://127.0.0.1:7000/x", "url   http://127.0.0.1:31234/x", True),
        ("...\nb", "a\na\nb", True),
        ("a\n...", "a", True),
        ("a b...", "a b c", True),
        ("etag: W...", "etag: V1", False),
        ("...\nb", "a\nb\nc", False),
        ("4 rows", "5 rows", False),
        ("4 rows", "", False),
        ("", "4 rows", False),
        ("by_name  public", "by_name  write-only", False),
    ],
)
def test_given_shown_and_printed_then_they_agree_but_for_what_varies(
    shown: str, printed: str, is_alike: bool
) -> None:
    assert agrees(shown, printed) is is_alike


@pytest.mark.process
@pytest.mark.parametrize("block", ["false\ntrue", "cat /nowhere | cat", "exit 3"])
def test_given_a_command_that_fails_when_run_then_the_page_is_wrong(
    block: str, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```sh\n{block}\n```\n")
    (command,) = commands_of(page)

    with (
        Shell(tmp_path, cwd=tmp_path, env=os.environ) as shell,
        pytest.raises(AssertionError, match="line 2"),
    ):
        shell.run(command)


@pytest.mark.process
def test_given_a_shell_when_blocks_run_then_variables_stay_and_a_shown_exit_code_is_no_fault(
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.md"
    failing = 'cat "$NAME" || echo "exit code $?"'
    page.write_text(f"```sh\nexport NAME=nowhere\n```\n```sh\n{failing}\n```\n")
    first, second = commands_of(page)

    with Shell(tmp_path, cwd=tmp_path, env={**os.environ, "LC_ALL": "C"}) as shell:
        assert shell.run(first) == ""
        assert shell.run(second) == "cat: nowhere: No such file or directory\nexit code 1\n"
