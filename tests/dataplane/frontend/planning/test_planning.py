"""Plans of statements: rows and entries, in every state of every element."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.row_input import Op
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Conflict, Refused
from tests.dataplane.frontend.planning.model import ModelRegion
from tests.dataplane.frontend.tables import A, B, column, index, rule, schema_of

DELETE_ONLY, WRITE_ONLY, PUBLIC = (
    ElementState.DELETE_ONLY,
    ElementState.WRITE_ONLY,
    ElementState.PUBLIC,
)
ROWS = ({"id": 1, "a": 10, "b": "x"}, {"id": 2, "a": 20, "b": "y"})


def filled(schema: Schema) -> ModelRegion:
    region = ModelRegion()
    region.run(schema, Op.INSERT, ROWS)
    return region


def test_given_no_row_when_inserted_then_it_is_there_and_a_second_time_it_conflicts() -> None:
    schema = schema_of()
    region = filled(schema)

    with pytest.raises(Conflict, match="version-mismatch"):
        region.run(schema, Op.INSERT, ROWS[:1])
    with pytest.raises(Conflict, match="already-exists") as told:
        region.run(schema, Op.INSERT, ROWS[:1], careful=True)

    assert region.shown(schema) == list(ROWS)
    assert told.value.facts["keys"] == [{"id": 1}]


def test_given_an_update_when_run_then_only_what_it_names_changes() -> None:
    schema = schema_of()
    region = filled(schema)

    region.run(schema, Op.UPDATE, [{"id": 1, "a": 11}, {"id": 2, "b": None}])

    assert region.shown(schema) == [{"id": 1, "a": 11, "b": "x"}, {"id": 2, "a": 20, "b": None}]


def test_given_a_missing_row_when_updated_then_nothing_of_its_region_changes() -> None:
    schema = schema_of()
    region = filled(schema)

    with pytest.raises(Conflict, match="row-missing") as told:
        region.run(schema, Op.UPDATE, [{"id": 1, "a": 0}, {"id": 3, "a": 0}])

    assert told.value.facts["keys"] == [{"id": 3}]
    assert region.shown(schema) == list(ROWS)


def test_given_an_upsert_when_a_column_is_not_named_then_it_has_its_default() -> None:
    schema = schema_of(column(2, "a", default=5), B)
    region = filled(schema)

    region.run(schema, Op.UPSERT, [{"id": 1}, {"id": 3, "b": "z"}])

    assert region.shown(schema) == [
        {"id": 1, "a": 5, "b": None},
        ROWS[1],
        {"id": 3, "a": 5, "b": "z"},
    ]


def test_given_missing_rows_when_deleted_then_it_is_fine() -> None:
    schema = schema_of(index(1, 2))
    region = filled(schema)

    region.run(schema, Op.DELETE, [{"id": 1}, {"id": 7}])

    assert region.shown(schema) == [ROWS[1]]
    assert region.index(1) == region.should_have(schema, 1)


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("state", [WRITE_ONLY, PUBLIC])
@pytest.mark.case("online 23")
def test_given_an_index_that_is_maintained_when_rows_change_then_it_is_that_of_the_rows(
    state: ElementState, unique: bool
) -> None:
    schema = schema_of(index(1, 2, 3, unique=unique, state=state))
    region = filled(schema)

    region.run(schema, Op.UPDATE, [{"id": 1, "a": 7}])
    region.run(schema, Op.UPSERT, [{"id": 2, "a": None}, {"id": 3, "a": None}])
    region.run(schema, Op.DELETE, [{"id": 1}])

    assert region.index(1) == region.should_have(schema, 1) != {}


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.case("online 23-25")
def test_given_an_index_that_only_deletes_when_rows_change_then_no_entry_is_made_and_old_ones_go(
    unique: bool,
) -> None:
    public = schema_of(index(1, 2, unique=unique))
    leaving = schema_of(index(1, 2, unique=unique, state=DELETE_ONLY))
    region = filled(public)

    region.run(leaving, Op.INSERT, [{"id": 3, "a": 30}])
    region.run(leaving, Op.UPDATE, [{"id": 1, "a": 11}])
    assert len(region.index(1)) == 1
    region.run(leaving, Op.DELETE, [{"id": 2}])

    assert region.index(1) == {}


@pytest.mark.parametrize("state", [WRITE_ONLY, PUBLIC])
@pytest.mark.case("online 38")
def test_given_a_unique_index_when_a_second_row_has_its_values_then_it_conflicts(
    state: ElementState,
) -> None:
    schema = schema_of(index(1, 2, unique=True, state=state))
    region = filled(schema)

    for op, rows in (
        (Op.INSERT, [{"id": 3, "a": 10}]),
        (Op.UPSERT, [{"id": 3, "a": 10}]),
        (Op.UPDATE, [{"id": 2, "a": 10}]),
    ):
        with pytest.raises(Conflict, match="version-mismatch"):
            region.run(schema, op, rows)
        with pytest.raises(Conflict, match="index-not-unique") as told:
            region.run(schema, op, rows, careful=True)
        assert told.value.facts["keys"] == [{"id": rows[0]["id"]}]

    assert region.shown(schema) == list(ROWS)


@pytest.mark.parametrize("state", [WRITE_ONLY, PUBLIC])
@pytest.mark.case("online 43")
def test_given_a_unique_index_when_one_statement_has_values_twice_then_it_conflicts(
    state: ElementState,
) -> None:
    schema = schema_of(index(1, 2, unique=True, state=state))

    with pytest.raises(Conflict, match="index-not-unique"):
        ModelRegion().run(schema, Op.INSERT, [{"id": 1, "a": 1}, {"id": 2, "a": 1}])


@pytest.mark.case("online 42")
def test_given_a_unique_index_when_values_are_null_then_many_rows_have_them() -> None:
    schema = schema_of(index(1, 2, 3, unique=True))
    region = ModelRegion()

    region.run(schema, Op.INSERT, [{"id": n, "a": 1, "b": None} for n in range(3)])
    region.run(schema, Op.UPDATE, [{"id": 1, "b": "x"}])

    assert region.index(1) == region.should_have(schema, 1)
    assert len(region.index(1)) == 3


@pytest.mark.parametrize("state", [WRITE_ONLY, PUBLIC])
@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("op", [Op.UPDATE, Op.UPSERT])
@pytest.mark.case("online 41")
def test_given_a_unique_index_when_two_rows_exchange_values_then_both_entries_lead_to_theirs(
    op: Op, careful: bool, state: ElementState
) -> None:
    schema = schema_of(index(1, 2, unique=True, state=state))
    region = filled(schema)

    region.run(schema, op, [{"id": 1, "a": 20}, {"id": 2, "a": 10}], careful=careful)

    assert region.index(1) == region.should_have(schema, 1)


@pytest.mark.case("online 40")
def test_given_two_rows_of_before_with_one_value_when_one_goes_then_the_others_entry_stays() -> (
    None
):
    """The entry leads to the row that was written while the index was made (anomaly A2)."""
    before, now = schema_of(), schema_of(index(1, 2, unique=True, state=WRITE_ONLY))
    region = ModelRegion()
    region.run(before, Op.INSERT, [{"id": 1, "a": 5}])
    region.run(now, Op.INSERT, [{"id": 2, "a": 5}])

    region.run(now, Op.DELETE, [{"id": 1}])

    assert list(region.index(1).values()) == list(region.rows)


@pytest.mark.parametrize("state", [DELETE_ONLY, WRITE_ONLY])
@pytest.mark.parametrize("op", [Op.UPSERT, Op.UPDATE])
def test_given_a_hidden_column_when_a_row_changes_then_its_value_survives(
    op: Op, state: ElementState
) -> None:
    public = schema_of(A, B)
    leaving = schema_of(A, B.model_copy(update={"state": state}))
    region = filled(public)

    region.run(leaving, op, [{"id": 1, "a": 11}])

    assert region.shown(leaving)[0] == {"id": 1, "a": 11}
    assert region.shown(public)[0] == {"id": 1, "a": 11, "b": "x"}


def test_given_a_hidden_column_when_a_client_names_it_then_it_is_unknown() -> None:
    schema = schema_of(A, B.model_copy(update={"state": WRITE_ONLY}))

    with pytest.raises(Refused, match="found b"):
        ModelRegion().run(schema, Op.INSERT, [{"id": 1, "b": "x"}])


@pytest.mark.parametrize("op", [Op.INSERT, Op.UPSERT])
@pytest.mark.case("online 44-45")
def test_given_a_column_on_its_way_in_when_rows_are_written_then_they_have_its_default(
    op: Op,
) -> None:
    new = column(3, "b", "string", nullable=False, default="d", origin_default="o")
    coming = schema_of(A, new.model_copy(update={"state": WRITE_ONLY}))
    region = ModelRegion()

    region.run(coming, op, [{"id": 1, "a": 1}])

    assert region.shown(schema_of(A, new)) == [{"id": 1, "a": 1, "b": "d"}]


@pytest.mark.parametrize("op", [Op.INSERT, Op.UPSERT])
@pytest.mark.parametrize("nullable", [False, True])
def test_given_a_column_that_only_deletes_when_rows_are_written_then_they_read_as_those_of_before(
    op: Op, nullable: bool
) -> None:
    new = column(3, "b", "string", nullable=nullable, default="d", origin_default="o")
    coming = schema_of(A, new.model_copy(update={"state": DELETE_ONLY}))
    region = ModelRegion()

    region.run(coming, op, [{"id": 1, "a": 1}])

    assert region.shown(schema_of(A, new)) == [{"id": 1, "a": 1, "b": "o"}]


def test_given_a_null_that_a_user_said_when_the_column_is_hidden_then_it_stays_null() -> None:
    public = column(3, "b", "string", default="d", origin_default="o")
    hidden = schema_of(A, public.model_copy(update={"state": WRITE_ONLY}))
    region = ModelRegion()
    region.run(schema_of(A, public), Op.INSERT, [{"id": 1, "a": 1, "b": None}])

    region.run(hidden, Op.UPDATE, [{"id": 1, "a": 2}])

    assert region.shown(schema_of(A, public)) == [{"id": 1, "a": 2, "b": None}]


def test_given_a_column_that_is_not_nullable_when_it_is_null_then_the_row_is_refused() -> None:
    schema = schema_of(A, column(3, "b", "string", nullable=False))

    with pytest.raises(Refused, match="not nullable"):
        ModelRegion().run(schema, Op.INSERT, [{"id": 1, "a": 1}])


@pytest.mark.parametrize("state", [WRITE_ONLY, PUBLIC])
def test_given_a_constraint_that_is_enforced_when_a_row_breaks_it_then_it_is_refused(
    state: ElementState,
) -> None:
    region = ModelRegion()
    region.run(schema_of(), Op.INSERT, [{"id": 1, "a": None}])
    schema = schema_of(rule("not-null", 2, state=state))

    region.run(schema, Op.UPDATE, [{"id": 1, "b": "it is not touched"}])

    for op, row in ((Op.INSERT, {"id": 2}), (Op.UPDATE, {"id": 1, "a": None})):
        with pytest.raises(Refused, match="constraint-violated") as told:
            region.run(schema, op, [row])
        assert told.value.facts["pointer"] == "/rows/0"


@pytest.mark.parametrize("state", [WRITE_ONLY, PUBLIC])
@pytest.mark.case("online 54", "online 55")
def test_given_a_check_that_is_enforced_when_a_row_breaks_it_then_it_is_refused(
    state: ElementState,
) -> None:
    """With what a statement does not name as the row has it, or as its default is."""
    region, more = ModelRegion(), column(4, "d", default=7)
    region.run(schema_of(A, B, more), Op.INSERT, [{"id": 1, "a": 9, "b": "old"}])
    region.run(schema_of(A, B, more), Op.INSERT, [{"id": 2, "a": 1}])
    check = rule("check", 2, 4, state=state, expression="c2 < c4")
    schema = schema_of(A, B, more, check)

    region.run(schema, Op.UPDATE, [{"id": 1, "b": "it is not touched"}])
    region.run(schema, Op.UPSERT, [{"id": 3, "a": None}, {"id": 4, "a": 6}])

    wrong: tuple[tuple[Op, dict[str, object]], ...] = (
        (Op.INSERT, {"id": 5, "a": 7}),
        (Op.UPSERT, {"id": 2, "a": 2, "d": 2}),
        (Op.UPDATE, {"id": 2, "a": 7}),
        (Op.UPDATE, {"id": 1, "d": 8}),
    )
    for op, row in wrong:
        with pytest.raises(Refused, match="constraint-violated") as told:
            region.run(schema, op, [row])
        assert told.value.facts["pointer"] == "/rows/0"


@pytest.mark.parametrize(
    ("op", "row", "why"),
    [
        (Op.INSERT, {"a": 1}, "/rows/0/id"),
        (Op.INSERT, {"id": None}, "/rows/0/id"),
        (Op.INSERT, {"id": "1"}, "/rows/0/id"),
        (Op.INSERT, {"id": 1, "nope": 1}, "nope"),
        (Op.DELETE, {"id": 1, "a": 1}, "primary key"),
    ],
)
def test_given_a_row_that_is_none_of_the_table_when_given_then_it_is_refused(
    op: Op, row: dict[str, object], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        ModelRegion().run(schema_of(), op, [row])


def test_given_one_key_twice_when_given_then_it_is_refused() -> None:
    with pytest.raises(Refused, match="twice"):
        ModelRegion().run(schema_of(), Op.UPSERT, [{"id": 1}, {"id": 1}])


small = st.integers(0, 2) | st.none()
row_of = st.fixed_dictionaries(
    {"id": st.integers(0, 3)}, optional={"a": small, "b": st.sampled_from(["x", "y"]) | st.none()}
)


@settings(max_examples=40)
@given(st.data(), st.booleans())
@pytest.mark.slow
def test_given_any_statements_when_run_then_the_indexes_are_those_of_the_rows(
    data: st.DataObject, careful: bool
) -> None:
    """Covers a plain and a unique index; a statement that conflicts changes nothing."""
    schema = schema_of(index(1, 2), index(2, 3, 2, unique=True))
    region = ModelRegion()

    for _ in range(data.draw(st.integers(1, 6))):
        op = data.draw(st.sampled_from(Op))
        rows = data.draw(
            st.lists(row_of, min_size=1, max_size=3, unique_by=lambda row: str(row["id"]))
        )
        rows = [{"id": one["id"]} for one in rows] if op is Op.DELETE else rows
        try:
            region.run(schema, op, rows, careful=careful)
        except Conflict:
            continue

    for family in (1, 2):
        assert region.index(family) == region.should_have(schema, family)
