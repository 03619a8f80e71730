"""When an input of the prompt is whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv.cli.prompt.input_end import has_statement, is_whole
from metasrv_base.errors import Refused


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "show tables;",
        "show tables ; -- all of them",
        "show tables; /* and */ ",
        "select ';'; ",
        'drop table "a;b";',
        "-- a comment alone\n;",
        ";",
        "begin; drop table t; commit;",
        "BEGIN;\nDROP TABLE t;\nCOMMIT;\nshow tables;",
        r"\d",
        r"  \d it's",
    ],
)
def test_given_an_end_then_the_input_is_whole(text: str) -> None:
    assert is_whole(text)


@pytest.mark.parametrize(
    "text",
    [
        "show tables",
        "show tables; show",
        "select ';",
        'drop table "a;',
        "show tables -- ;",
        "show tables /* ;",
        "show tables; /* goes on",
        "begin; drop table t;",
        "begin; drop table t; commit; begin;",
        "insert into t values ('it''s;')",
    ],
)
def test_given_no_end_then_it_goes_on(text: str) -> None:
    assert not is_whole(text)


@given(st.text(alphabet="ab;'\"-/*\n \\", max_size=12))
def test_given_any_text_then_a_whole_one_stays_so_with_blanks_behind_it(text: str) -> None:
    if is_whole(text):
        assert is_whole(f"{text}\n ")


def test_given_comments_alone_then_there_is_no_statement() -> None:
    assert not has_statement("-- nothing\n; /* ; */ ;")
    assert has_statement("-- a\nshow tables;")
    with pytest.raises(Refused):
        has_statement("select 'a")
