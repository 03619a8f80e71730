"""Words that bash splits at `:` and `=`, joined again."""

import pytest

from metasrv.cli.programs.bash_words import joined


@pytest.mark.parametrize(
    ("words", "number", "before", "incomplete"),
    [
        (["table", "get", "t"], 2, ["table", "get"], "t"),
        (["table", "get"], 2, ["table", "get"], ""),
        (["alter", "--alter-type", "id", ":", "in"], 4, ["alter", "--alter-type"], "id:in"),
        (["alter", "--alter-type", "id", ":"], 3, ["alter", "--alter-type"], "id:"),
        (["alter", "--alter-type", "id", ":"], 4, ["alter", "--alter-type"], "id:"),
        (["set", "t", "a", "=", "1", "b"], 5, ["set", "t", "a=1"], "b"),
        (["scan", "--columns", "=", "na"], 3, ["scan", "--columns"], "na"),
        (["scan", "--columns", "="], 2, ["scan", "--columns"], ""),
        (
            ["scan", "--metasrv", "http", ":", "//a", ":", "80", "t"],
            7,
            ["scan", "--metasrv", "http://a:80"],
            "t",
        ),
        ([], 0, [], ""),
    ],
)
def test_given_words_as_bash_splits_them_then_they_are_as_they_were_typed(
    words: list[str], number: int, before: list[str], incomplete: str
) -> None:
    assert joined(words, number) == (before, incomplete)
