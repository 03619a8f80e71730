"""Tables and their declarations: what is refused and why, what is marked, what a rename is."""

from typing import Any

import pytest

from metasrv.service.declared.difference import difference
from metasrv.service.declared.operations import DeclaredPlan
from metasrv.service.declared.steps import digest_of, planned, steps_of
from metasrv_base.wire.language.declared import (
    DeclaredCatalog,
    DeclaredSchema,
    DeclaredTable,
    DesiredState,
)

TABLE: dict[str, Any] = {
    "name": "t",
    "columns": [
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "a", "type": "int64"},
        {"name": "b", "type": "string"},
    ],
    "primary_key": ["id"],
    "indexes": [{"name": "by_b", "columns": ["b"]}],
    "constraints": [{"name": "a_is_small", "check": "a < 5"}],
}
PLACE = "/catalogs/0/schemas/0/tables/0"


def state(*tables: dict[str, Any]) -> DesiredState:
    declared = tuple(map(DeclaredTable.model_validate, tables))
    schema = DeclaredSchema(name="public", tables=declared)
    return DesiredState(catalogs=(DeclaredCatalog(name="main", schemas=(schema,)),))


def plan(*desired: dict[str, Any], prune: bool = False) -> DeclaredPlan:
    return difference(state(TABLE), state(*desired), prune=prune)


def table(**more: Any) -> dict[str, Any]:
    return {**TABLE, **more}


def columns(*changed: dict[str, Any]) -> list[dict[str, Any]]:
    return [TABLE["columns"][0], *changed]


def texts(found: DeclaredPlan) -> list[tuple[str, bool]]:
    assert not found.refusals
    return [(each.text, each.destructive is not None) for each in found.operations]


@pytest.mark.parametrize(
    ("desired", "pointer", "word"),
    [
        (table(primary_key=["id", "a"]), "/primary_key", "rows are kept by it"),
        (table(partition={"by": "hash", "columns": ["id"], "count": 4}), "/partition", "1 regions"),
        (table(placement="hot"), "/placement", "it is default"),
        (table(tablespace="fast"), "/tablespace", "it is default"),
        (table(storage_profile="memory"), "/storage_profile", "keep their engine"),
        (table(colocation_columns=["id"]), "/colocation_columns", "partitioning"),
        (
            table(columns=columns({"name": "a", "type": "string"}, TABLE["columns"][2])),
            "/columns/1/type",
            "a_is_small",
        ),
        (
            table(columns=columns(TABLE["columns"][1], {"name": "b", "type": "int32"})),
            "/columns/2/type",
            "by_b",
        ),
        (
            table(columns=[*TABLE["columns"], {"name": "c", "type": "date", "nullable": False}]),
            "/columns/3",
            "needs a default",
        ),
        (
            table(columns=[*TABLE["columns"], {"name": "c", "type": "date", "renamed_from": "z"}]),
            "",
            "",
        ),
    ],
)
def test_given_what_no_operation_changes_then_it_is_refused_with_place_and_reason(
    desired: dict[str, Any], pointer: str, word: str
) -> None:
    found = plan(desired)
    if not word:
        assert not found.refusals
        return
    (refusal,) = found.refusals
    assert refusal.pointer == f"{PLACE}{pointer}"
    assert refusal.code == "not-in-place"
    assert word in refusal.detail


def test_given_less_in_the_file_then_what_is_dropped_is_marked() -> None:
    less = table(columns=TABLE["columns"][:2], indexes=[], constraints=[])
    assert texts(plan(less)) == [
        ("drop index by_b", True),
        ("drop constraint a_is_small", True),
        ("drop column b", True),
    ]


def test_given_a_narrower_type_then_it_is_marked_and_a_wider_one_is_not() -> None:
    narrow = columns({"name": "a", "type": "int8"}, TABLE["columns"][2])
    assert texts(plan(table(columns=narrow, constraints=[]))) == [
        ("drop constraint a_is_small", True),
        ("type of a is int8", True),
    ]
    wide = columns({"name": "a", "type": "decimal(20,0)"}, TABLE["columns"][2])
    assert texts(plan(table(columns=wide, constraints=[])))[1] == (
        "type of a is decimal(20,0)",
        False,
    )


def test_given_another_name_then_only_a_declared_rename_keeps_the_values() -> None:
    c = {"name": "c", "type": "int64"}
    declared = table(
        columns=columns({**c, "renamed_from": "a"}, TABLE["columns"][2]),
        constraints=[{"name": "a_is_small", "check": "c<5"}],
    )
    assert texts(plan(declared)) == [("rename column a to c", False)]
    guessed = table(columns=columns(c, TABLE["columns"][2]), constraints=[])
    assert ("drop column a", True) in texts(plan(guessed))
    again = difference(state(declared), state(declared))
    assert again.operations == []


def test_given_both_names_then_which_one_it_is_is_not_guessed() -> None:
    both = table(columns=columns({"name": "b", "type": "string", "renamed_from": "a"}))
    (refusal, *_) = plan(both).refusals
    assert refusal.pointer == f"{PLACE}/columns/1/renamed_from"
    assert "both there" in refusal.detail


def test_given_another_condition_or_another_index_of_one_name_then_it_is_made_anew() -> None:
    other = table(
        indexes=[{"name": "by_b", "columns": ["b", "a"]}],
        constraints=[{"name": "a_is_small", "check": "a < 6"}],
    )
    assert texts(plan(other)) == [
        ("drop index by_b", True),
        ("drop constraint a_is_small", True),
        ("add constraint a_is_small check (a < 6)", False),
        ("create index by_b (b, a)", False),
    ]


def test_given_other_ways_to_write_the_same_then_there_is_no_difference() -> None:
    same = table(
        constraints=[{"name": "a_is_small", "check": "(a   <5)"}],
        partition={"by": "hash", "columns": ["id"], "count": 1},
        tablespace="default",
        placement="default",
        columns=[TABLE["columns"][0], TABLE["columns"][2], TABLE["columns"][1]],
    )
    assert plan(same).operations == []


def test_given_tables_that_are_not_named_then_only_prune_drops_them() -> None:
    assert texts(plan()) == []
    assert texts(plan(prune=True)) == [("drop table", True)]


def test_given_a_plan_then_what_a_batch_takes_and_what_one_alter_takes_go_together() -> None:
    found = plan(
        table(
            columns=[
                TABLE["columns"][0],
                {"name": "a", "type": "int64", "default": 3},
                {"name": "c", "type": "string"},
            ],
            indexes=[],
            options={"comment": "x"},
        ),
        table(name="u"),
        table(name="v"),
    )
    assert [[each.text for each in step.operations] for step in steps_of(found.operations)] == [
        ["create table (3 columns)", "create table (3 columns)", 'set comment="x"'],
        ["drop index by_b"],
        ["drop column b"],
        ["add column c string", "set default of a to 3"],
        ["add constraint a_is_small check (a < 5)"],
        ["create index by_b (b)"],
        ["add constraint a_is_small check (a < 5)"],
        ["create index by_b (b)"],
    ]


def test_given_another_state_or_another_operation_then_the_digest_is_another() -> None:
    one = planned(plan(table(indexes=[])).operations)
    other = planned(plan(table(constraints=[])).operations)
    digests = {digest_of(one), digest_of(one, ["t", 1]), digest_of(one, ["t", 2]), digest_of(other)}
    assert len(digests) == 4
