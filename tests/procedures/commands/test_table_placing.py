"""The placement and tablespace of a table that comes: as they were judged, or refused."""

from typing import Any

import pytest

from keys.commit.entry_writes import MetadataView
from keys.key import Key
from keys.model.placing.placements import PlacementInfo, PlacementKey, StorageProfile
from keys.model.placing.tablespaces import TablespaceInfo, TablespaceKey
from metasrv_base.errors import Conflict, MetaError, NotFound
from procedures.commands.table_placing import DEFAULTS, TablePlacingNames
from tests.procedures.harness.tables import table_info

HOT = StorageProfile(name="hot", engine="lsm", options={"memtable_bytes": 1})
COLD = HOT.model_copy(update={"name": "cold"})
MEMORY = HOT.model_copy(update={"engine": "memory", "options": {}})
LARGER = HOT.model_copy(update={"options": {"memtable_bytes": 2}})
FAST = PlacementInfo(placement_id=1031, name="fast", storage_profiles=(HOT,), created_at_ms=1)
ORDERS = TablespaceInfo(tablespace_id=1032, catalog="main", name="orders", created_at_ms=1)
NAMES = TablePlacingNames("fast", "orders")
INFO = table_info(1040, "t", 1).model_copy(
    update={
        "format": 2,
        "placement_id": 1031,
        "storage_profile": "hot",
        "engine_options": HOT.options,
        "tablespace_id": 1032,
    }
)


class View(MetadataView):
    """A few keys."""

    def __init__(self, *values: PlacementInfo | TablespaceInfo) -> None:
        self._values: dict[bytes, Any] = {}
        for value in values:
            key: Key[Any] = (
                PlacementKey(value.name)
                if isinstance(value, PlacementInfo)
                else TablespaceKey(value.catalog, value.name)
            )
            self._values[bytes(key)] = value

    def get(self, key: Key[Any]) -> Any:
        return self._values.get(bytes(key))


def test_given_what_it_was_judged_by_then_it_holds() -> None:
    NAMES.must_hold(INFO, View(FAST, ORDERS))
    DEFAULTS.must_hold(table_info(1040, "t", 1), View())
    assert NAMES.keys("main") == (PlacementKey("fast"), TablespaceKey("main", "orders"))
    assert DEFAULTS.keys("main") == ()


def of(**changes: object) -> PlacementInfo:
    return FAST.model_copy(update=changes)


@pytest.mark.parametrize(
    ("view", "names", "error"),
    [
        (View(ORDERS), NAMES, NotFound),
        (View(FAST), NAMES, NotFound),
        (View(of(placement_id=1050), ORDERS), NAMES, Conflict),
        (View(FAST, ORDERS.model_copy(update={"tablespace_id": 1050})), NAMES, Conflict),
        (View(of(storage_profiles=(COLD,)), ORDERS), NAMES, NotFound),
        (View(of(storage_profiles=(MEMORY,)), ORDERS), NAMES, Conflict),
        (View(of(storage_profiles=(LARGER,)), ORDERS), NAMES, Conflict),
        (View(FAST, ORDERS), DEFAULTS, NotFound),
        (View(FAST, ORDERS), TablePlacingNames("fast"), NotFound),
    ],
)
def test_given_another_by_now_then_it_is_refused(
    view: View, names: TablePlacingNames, error: type[MetaError]
) -> None:
    with pytest.raises(error):
        names.must_hold(INFO, view)
