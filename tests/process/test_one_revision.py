"""Done when (b): one mod_revision for all keys of each change, as etcdctl shows it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from metasrv.sdk.client import AsyncClient
from tests.process.harness.rig import CALM, Key, Rig, running, table_spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

METADATA = ("__table_", "__dn_table/", "__schema_name/", "__removed-", "__catalog/")
TABLE = {"__table_info", "__table_route", "__dn_table", "__table_name"}
REMOVED = {"__removed-__table_info", "__removed-__table_route", "__removed-__table_name"}
Keys = dict[str, Key]


@dataclass(frozen=True, slots=True)
class Change:
    """A change, and the families of keys that it must put and delete."""

    op: str
    ask: Callable[[AsyncClient], Awaitable[object]]
    puts: frozenset[str] | set[str]
    deletes: frozenset[str] | set[str] = frozenset()


ALTERATIONS = (
    {"op": "set_options", "options": {"app.owner": "ada"}},
    {"op": "rename_column", "name": "word", "new_name": "term"},
)
RENAMED = {"__table_info", "__table_name"}
CHANGES = (
    Change("schema.created", lambda db: db.schemas.create("main.books"), {"__schema_name"}),
    Change("table.created", lambda db: db.tables.create(table_spec("a")), TABLE),
    Change("table.renamed", lambda db: db.tables.rename("a", "b"), RENAMED, {"__table_name"}),
    Change(
        "table.renamed", lambda db: db.tables.rename("b", "c", "books"), RENAMED, {"__table_name"}
    ),
    Change("table.altered", lambda db: db.tables.alter("books.c", ALTERATIONS), {"__table_info"}),
    Change("table.dropped", lambda db: db.tables.drop("books.c"), REMOVED, TABLE),
    Change("table.undropped", lambda db: db.tables.undrop("books.c", new_name="d"), TABLE, REMOVED),
    Change(
        "table.renamed",
        lambda db: db.tables.rename("books.d", "e", "public"),
        RENAMED,
        {"__table_name"},
    ),
    Change("schema.dropped", lambda db: db.schemas.drop("main.books"), set(), {"__schema_name"}),
)


async def test_given_each_change_when_done_then_all_its_keys_bear_one_revision(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, flags=CALM) as rig, rig.client() as db:
        await rig.leader()
        seen = []
        for change in CHANGES:
            before = await rig.keys()
            await change.ask(db)
            seen.append((change, before, await rig.keys()))
        for change, before, after in seen:
            await must_be_one_transaction(rig, change, before, after)
        agreement = await rig.agreement()

    assert agreement.wrong == []


async def must_be_one_transaction(rig: Rig, change: Change, before: Keys, after: Keys) -> None:
    updates = {
        key.mod_revision: key.value
        for name, key in after.items()
        if name.startswith("__catalog/update/") and name not in before
    }
    (revision,) = (r for r, u in updates.items() if u["entries"][0]["op"] == change.op)
    at = await rig.keys(revision=revision)
    one_before = await rig.keys(revision=revision - 1)
    put = {name for name, key in at.items() if key.mod_revision == revision}
    gone = one_before.keys() - at.keys()
    updated = [name for name in put if name.startswith("__catalog/update/")]

    assert (len(updated), len(updates[revision]["entries"])) == (1, 1)
    assert families(put) - {"__procedure", "__procedure_history"} == change.puts | {"__catalog"}
    assert families(gone) - {"__procedure"} == change.deletes
    assert families(put) & {"__procedure", "__procedure_history"}, "the record that says so"
    # Regions of an undropped table are said to be open one by one, each by an update of its own;
    # a table that goes is hidden first.
    if change.op not in ("table.undropped", "table.dropped"):
        moved = {
            k.mod_revision
            for n, k in after.items()
            if n.startswith(METADATA) and k not in before.values()
        }
        assert (moved, list(updates)) == ({revision} if put else set(), [revision])
    print(f"{change.op:16} revision {revision}: {len(put)} put, {len(gone)} deleted")


def families(names: set[str]) -> set[str]:
    return {name.partition("/")[0] for name in names}
