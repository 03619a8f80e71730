"""The DML matrix of a change of type: each row inserted in stage i and changed in stage j, i <= j,
by every version in use there, with values that one of the two types does not have."""

from collections.abc import Mapping

import pytest

from dataplane.frontend.planning.row_input import Op
from metasrv_base.elements.graph import Act, Behaviour
from metasrv_base.elements.graphs import CHANGED_COLUMN, REPLACED_COLUMN
from tests.dataplane.frontend.planning.type_changes import ConvertingRegion, Life, TypeChange, cells
from tests.metasrv_base.elements.proof.faulty import behaving

CHANGES: Mapping[str, TypeChange] = {
    "int32 to int64": TypeChange(
        "int32", "int64", (("int32", 7), ("int32", -8)), new_only=2**40, default=3
    ),
    "int64 to int32": TypeChange("int64", "int32", (("int32", 7), ("int32", -8)), old_only=2**40),
    "string to int64": TypeChange("string", "int64", (("int64", 7), ("int64", -8)), old_only="abc"),
    "int64 to string": TypeChange(
        "int64",
        "string",
        (("int64", 7), ("int64", -8)),
        new_only="007",
        default=3,
        nullable=False,
    ),
}


LIVED = [*((name, "to its end") for name in CHANGES), ("string to int64", "cancelled")]


@pytest.mark.parametrize(("name", "way"), LIVED)
@pytest.mark.case("online 51")
def test_given_a_row_of_any_stage_when_it_changes_in_any_later_one_then_every_reader_sees_it(
    name: str, way: str
) -> None:
    found = dict(cells(CHANGES[name], way))

    assert {cell: wrong for cell, wrong in found.items() if wrong} == {}
    assert len(found) > 100


def test_given_a_value_that_the_new_type_cannot_hold_when_it_is_write_only_then_it_is_refused() -> (
    None
):
    change = CHANGES["int64 to int32"]
    (stage,) = [one for one in change.stages("to its end") if one.is_reorg]
    life = Life(change)
    life.begin(stage)

    life.write(stage.used[0], Op.INSERT, ("int64", 2**40))

    assert (life.said, life.region.rows) == (None, {})


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("float64", "string", "NaN"),
        ("float32", "float64", "NaN"),
        ("string", "decimal(10,2)", "1.5"),
        ("float64", "int64", -0.0),
    ],
)
def test_given_a_value_that_converts_when_its_text_does_not_come_back_then_it_is_taken(
    old: str, new: str, value: float | str
) -> None:
    change = TypeChange(old, new, ((old, value), (old, value)))
    versions = [one for stage in change.stages("to its end") for one in stage.used]
    (hidden, *_) = [one for one in versions if any(c.mirror for c in one.schema.columns)]
    region = ConvertingRegion(info=hidden.info)

    region.run(hidden.schema, Op.INSERT, [{"id": 1, "a": value}])

    assert len(region.rows) == 1


KEPT = Behaviour(insert=(Act.MIRROR,), update=(Act.KEEP,), update_elsewhere=(Act.KEEP,))
LOST = Behaviour(insert=(Act.MIRROR,), update=(Act.MIRROR,))
PLANTED: Mapping[str, tuple[str, str, object]] = {
    "what does not fit is stored as null": (
        "int32 to int64",
        "planning.planning.check_mirrors",
        lambda *_: None,
    ),
    "the old column keeps what was updated": (
        "int64 to string",
        "catalog.schema.REPLACED_COLUMN",
        behaving(REPLACED_COLUMN, WRITE_ONLY=KEPT),
    ),
    "other updates forget the old value": (
        "int64 to string",
        "catalog.schema.REPLACED_COLUMN",
        behaving(REPLACED_COLUMN, WRITE_ONLY=LOST),
    ),
    "write-only does not check": (
        "int64 to int32",
        "catalog.schema.CHANGED_COLUMN",
        behaving(CHANGED_COLUMN, WRITE_ONLY=Behaviour()),
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_given_a_planted_mistake_when_the_matrix_is_lived_then_it_names_the_row(
    planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, place, mistake = PLANTED[planted]
    monkeypatch.setattr(f"dataplane.frontend.{place}", mistake)

    assert any(wrong for _, wrong in cells(CHANGES[name], "to its end"))
