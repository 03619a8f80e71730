"""When a snapshot is due, and where the log may begin."""

import pytest

from keys.catalog.catalog import Catalog
from keys.model.snapshot.snapshots import SnapshotRef, SnapshotVersion
from metasrv.leadership.log.log_policy import (
    LOG_BYTES_MIN,
    HistoryLimits,
    LogPin,
    floor_for,
    history_bytes,
    is_due,
)
from tests.keys.catalog.snapshots import ref_of

WIDE = HistoryLimits(1_000, 1 << 40)


def ref(version: int, at_ms: int, size_bytes: int = 10, log_bytes: int = 100) -> SnapshotRef:
    more = {"at_ms": at_ms, "size_bytes": size_bytes, "log_bytes": log_bytes}
    return ref_of(Catalog(version=version), []).model_copy(update=more)


KEPT = (ref(0, 0, 0, 0), ref(10, 1_000), ref(20, 2_000), ref(30, 3_000))


def pin(version: int) -> LogPin:
    return LogPin("pin a", version, 0, "a test")


@pytest.mark.parametrize(
    ("size_bytes", "log_bytes", "due"),
    [
        (None, LOG_BYTES_MIN - 1, False),
        (None, LOG_BYTES_MIN, True),
        (10, LOG_BYTES_MIN, True),
        (5 * LOG_BYTES_MIN, 5 * LOG_BYTES_MIN - 1, False),
        (5 * LOG_BYTES_MIN, 5 * LOG_BYTES_MIN, True),
    ],
)
def test_given_a_log_as_large_as_the_last_snapshot_then_the_next_is_due(
    size_bytes: int | None, log_bytes: int, due: bool
) -> None:
    kept = None if size_bytes is None else SnapshotVersion(kept=(ref(1, 1, size_bytes),))

    assert is_due(kept, log_bytes) is due


@pytest.mark.parametrize(
    ("now_ms", "floor"), [(0, 0), (1_999, 0), (2_000, 10), (3_500, 20), (9_000, 30)]
)
def test_given_an_age_then_what_was_current_that_long_ago_can_still_be_read(
    now_ms: int, floor: int
) -> None:
    assert floor_for(KEPT, WIDE, (), now_ms) == floor


@pytest.mark.parametrize(
    ("bytes_max", "floor"),
    [(330, 0), (329, 10), (230, 10), (229, 20), (120, 20), (119, 30), (0, 30)],
)
def test_given_more_bytes_than_allowed_then_the_oldest_history_goes_early(
    bytes_max: int, floor: int
) -> None:
    assert history_bytes(KEPT) == 330
    assert floor_for(KEPT, HistoryLimits(1 << 40, bytes_max), (), 3_000) == floor


@pytest.mark.parametrize(
    ("versions", "floor"), [((35,), 30), ((30,), 30), ((29,), 20), ((29, 12), 10), ((3,), 0)]
)
@pytest.mark.case("catalog 119")
def test_given_pins_then_nothing_goes_that_the_oldest_of_them_needs(
    versions: tuple[int, ...], floor: int
) -> None:
    pins = [pin(version) for version in versions]

    assert floor_for(KEPT, HistoryLimits(0, 0), pins, 9_000) == floor
