"""Catalog cases 49-50 and 75-97: the states of indexes, and what they have to do with tables."""

import pytest

from keys.model.elements import graph_of
from keys.model.records import ProcedureOutcome
from keys.model.tables import Index, TableInfo
from metasrv_base.elements.states import ElementState
from procedures.elements.element_targets import back, past_no_return, to_end, to_last_undoable
from procedures.kinds.alter.alter_operations import DropColumnOperation, DropIndex, drafted
from tests.metasrv.api.rig import TABLES, leader
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.filling import Filling, filling
from tests.procedures.harness.online import UNINDEXES, wide_info
from tests.procedures.kinds.alter.moved import until_end

WAIT = {"Prefer": "wait=10"}
HOLDER = "fe-1"
ABSENT, DELETE_ONLY, WRITE_ONLY, PUBLIC = (
    ElementState.ABSENT,
    ElementState.DELETE_ONLY,
    ElementState.WRITE_ONLY,
    ElementState.PUBLIC,
)


def indexed(state: ElementState) -> TableInfo:
    """A table of four columns with an index over `note`."""
    index = Index(id=1, name="by_note", columns=(2,), unique=False, state=state)
    return wide_info().model_copy(update={"indexes": (index,), "next_index_id": 2})


def states(versions: list[TableInfo]) -> list[ElementState]:
    """The state of the only index in each version."""
    return [info.indexes[0].state if info.indexes else ABSENT for info in versions]


@pytest.mark.case("catalog 77", "catalog 81")
@pytest.mark.parametrize("unique", [False, True])
def test_given_an_index_then_its_states_are_entered_only_from_those_before_them(
    unique: bool,
) -> None:
    index = Index(id=1, name="i", columns=(2,), unique=unique, state=PUBLIC)

    edges = graph_of(index).edges()

    into = {
        after: {before for before, end in edges if end is after}
        for after in (ABSENT, DELETE_ONLY, WRITE_ONLY, PUBLIC)
    }
    assert into == {
        ABSENT: {DELETE_ONLY},
        DELETE_ONLY: {ABSENT, WRITE_ONLY},
        WRITE_ONLY: {DELETE_ONLY, PUBLIC},
        PUBLIC: {WRITE_ONLY},
    }


@pytest.mark.case("catalog 80")
@pytest.mark.parametrize("state", [DELETE_ONLY, WRITE_ONLY])
def test_given_an_index_that_was_never_public_when_taken_back_then_it_goes_and_is_never_read(
    state: ElementState,
) -> None:
    info = indexed(state)
    (move,) = drafted(info, (DropIndex(name="by_note"),)).moves
    added = move.model_copy(update={"to": PUBLIC, "was": ABSENT})

    versions = until_end(info, (added,), back)

    assert states(versions)[-1] is ABSENT
    assert PUBLIC not in states(versions)


@pytest.mark.case("catalog 49")
def test_given_an_index_on_its_way_out_when_its_column_is_dropped_then_both_go() -> None:
    draft = drafted(indexed(DELETE_ONLY), (DropColumnOperation(name="note"),))

    versions = [draft.entered]
    for leg in (to_last_undoable, past_no_return, to_end):
        versions += until_end(versions[-1], draft.moves, leg)

    assert "note" not in [column.name for column in versions[-1].columns]
    assert versions[-1].indexes == ()


@pytest.mark.case("catalog 50")
async def test_given_an_index_of_another_table_over_such_a_column_then_it_stays() -> None:
    async with leader() as one:
        for name in ("t", "u"):
            await one.make(name)
            index = {"name": f"{name}_i", "columns": ["carrier"]}
            await one.client.post(f"{TABLES}/{name}/indexes", json=index, headers=WAIT)
        drop = {"operations": [{"op": "drop_column", "name": "carrier"}]}

        answer = await one.client.post(f"{TABLES}/t/alter", json=drop, headers=WAIT)

        other = (await one.client.get(f"{TABLES}/u")).json()
        assert answer.status_code == 200, answer.text
        assert answer.json()["indexes"] == []
        assert [(index["name"], index["state"]) for index in other["indexes"]] == [
            ("u_i", "public")
        ]


@pytest.mark.case("catalog 82")
async def test_given_a_table_with_an_index_when_dropped_then_no_version_has_one_of_them() -> None:
    async with leader() as one:
        await one.make()
        index = {"name": "i", "columns": ["carrier"]}
        await one.client.post(f"{TABLES}/t/indexes", json=index, headers=WAIT)
        before = one.version
        await one.client.delete(f"{TABLES}/t", headers=WAIT)

        found = []
        for version in range(before, one.version + 1):
            query = f"?as_of=version:{version}"
            table = await one.client.get(f"{TABLES}/t{query}")
            indexes = await one.client.get(f"{TABLES}/t/indexes{query}")
            found.append((table.status_code, indexes.status_code))

        assert found[0] == (200, 200)
        assert set(found[1:]) == {(404, 404)}


@pytest.mark.case("catalog 87")
async def test_given_indexes_when_listed_then_in_the_order_of_their_ids() -> None:
    async with leader() as one:
        await one.make()
        for name in ("z", "a", "m"):
            index = {"name": name, "columns": ["carrier"]}
            await one.client.post(f"{TABLES}/t/indexes", json=index, headers=WAIT)

        listed = (await one.client.get(f"{TABLES}/t/indexes")).json()["indexes"]

        assert [(index["id"], index["name"]) for index in listed] == [(1, "z"), (2, "a"), (3, "m")]


@pytest.mark.case("catalog 97")
def test_given_a_transaction_when_an_index_is_dropped_then_it_stays_until_that_ends() -> None:
    """It is write-only meanwhile: the transaction still makes entries."""

    async def scenario(at: Filling) -> None:
        await at.submit()
        await at.go_on()
        info = await at.info()
        at.cluster.holders.uses(HOLDER, TABLE, info.schema_version)
        await at.submit("drop_index", UNINDEXES)
        await at.settle()
        meanwhile = states([await at.info()])
        (wait,) = at.entry().live.waits

        at.cluster.holders.lets_go(HOLDER, TABLE)
        ended = await at.go_on()

        assert meanwhile == [WRITE_ONLY]
        assert (wait.kind, wait.holder) == ("schema_lease", HOLDER)
        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert states([await at.info()]) == [ABSENT]

    filling(scenario)
