"""The texts of `executemany`: all parameters in order, each text small, nothing read ahead."""

from collections.abc import Iterator

import orjson
import pytest

from metasrv.dbapi import batches
from metasrv.dbapi.batches import Repeated
from metasrv.dbapi.errors import DataError
from metasrv_base.sql.split import split

INSERT = "insert into t (id, b) values (?, ?)  -- all\n;"


def test_given_an_insert_then_rows_share_it_up_to_the_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "ROWS_MAX", 3)
    repeated = Repeated.of(INSERT)

    texts = [repeated.text(each) for each in repeated.batches((n, "x") for n in range(5))]

    assert texts == [
        "insert into t (id, b) values ( 0 ,  'x' ),\n( 1 ,  'x' ),\n( 2 ,  'x' )",
        "insert into t (id, b) values ( 3 ,  'x' ),\n( 4 ,  'x' )",
    ]


@pytest.mark.parametrize("operation", [INSERT, "update t set b = ? where id = ? -- one"])
@pytest.mark.parametrize("value", ["x" * 1_000, "\0" * 200, "é" * 500])
def test_given_many_parameters_then_each_text_is_bounded_as_json(
    operation: str, value: str
) -> None:
    repeated = Repeated.of(operation)
    rows = [(value, value)] * 1_500

    made = list(repeated.batches(rows))

    assert sum(len(each.texts) for each in made) == 1_500
    sizes = [len(orjson.dumps(repeated.text(each))) for each in made]
    assert max(sizes) < batches.TEXT_BYTES_MAX * 1.05
    assert len(made) < 2 + 1.2 * sum(sizes) / batches.TEXT_BYTES_MAX


def test_given_a_row_above_the_bound_then_it_is_sent_alone() -> None:
    repeated = Repeated.of(INSERT)
    long = "x" * batches.TEXT_BYTES_MAX

    made = list(repeated.batches([(1, "x"), (2, long), (3, "x")]))

    assert [len(each.texts) for each in made] == [1, 1, 1]


def test_given_statements_that_end_in_a_comment_then_each_is_one_of_the_text() -> None:
    repeated = Repeated.of("delete from t where id = ? -- gone")
    (batch,) = repeated.batches([(1,), (2,), (3,)])

    found = [each.text for each in split(repeated.text(batch))]

    assert found == [f"delete from t where id =  {number}" for number in (1, 2, 3)]


def test_given_parameters_that_are_made_as_they_are_read_then_none_is_read_ahead() -> None:
    read: list[int] = []

    def parameters() -> Iterator[tuple[object, object]]:
        for number in range(6_000):
            read.append(number)
            yield number, "x"
        yield 0, object()

    made = Repeated.of(INSERT).batches(parameters())

    assert len(next(made).texts) == batches.ROWS_MAX
    assert len(read) <= batches.ROWS_MAX + 1
    with pytest.raises(DataError):
        next(made)
