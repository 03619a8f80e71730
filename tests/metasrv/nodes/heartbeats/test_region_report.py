"""Bounds of the work for a heartbeat of many regions: bytes, objects and pieces."""

import gc

import pytest

from metasrv.api.direct import COLUMNS, OPTIONAL, read_heartbeat
from metasrv.nodes.heartbeats import region_report
from metasrv.nodes.heartbeats.region_report import RegionReport, ReportChanges
from metasrv_base.concurrency.turns import TURN, at_once
from metasrv_base.wire.http import strict_json
from metasrv_base.wire.node.nodes import (
    HeartbeatRequest,
    RegionColumns,
    RegionStat,
    digest_of,
)
from tests.metasrv.nodes.leader import beat

COUNT = 8 * TURN
REGION_BYTES_MAX = 140
TRACKED_MAX = 100
"""Objects that a garbage collection would look at, however many regions there are."""


def stats(count: int) -> list[RegionStat]:
    """Regions as a node with a short root has them."""
    return [
        RegionStat(
            region_id=str(table << 32),
            epoch=3,
            state="open",
            rows=1_234_567,
            bytes=123_456_789,
            wal_bytes=1_234_567,
            files=12,
            version=1_700_000_000_000_000_000,
            root=f"/data/dn-1/regions/{table << 32}-0",
        )
        for table in range(1_024, 1_024 + count)
    ]


def sent(count: int) -> bytes:
    return beat(1, *stats(count)).model_dump_json().encode()


def tracked() -> int:
    gc.collect()
    return len(gc.get_objects())


def test_given_many_regions_when_reported_then_the_bytes_of_each_are_few() -> None:
    assert len(sent(COUNT)) - len(sent(0)) < COUNT * REGION_BYTES_MAX


def test_given_many_regions_when_parsed_and_kept_then_no_object_for_each_of_them() -> None:
    body, before = sent(COUNT), tracked()

    said = strict_json.parse(body)
    parsed = tracked()
    report = RegionReport(HeartbeatRequest.model_validate(said).regions)

    assert parsed - before < TRACKED_MAX
    assert tracked() - before < TRACKED_MAX
    assert list(report.values()) == stats(COUNT)


def test_given_many_regions_when_checked_then_one_column_a_turn_and_as_if_checked_whole() -> None:
    said = strict_json.parse(sent(COUNT))

    turns, checking = 0, read_heartbeat(said)
    while True:
        try:
            next(checking)
        except StopIteration as over:
            request = over.value
            break
        turns += 1

    assert turns == len(COLUMNS) - len(OPTIONAL)
    assert request == HeartbeatRequest.model_validate(said)


def test_given_versions_of_copies_when_sent_then_a_column_more_and_none_if_nobody_has_any() -> None:
    plain = stats(3)[1:]
    told = [plain[0], plain[1].model_copy(update={"copies_version": 3})]

    assert "copies_version" not in RegionColumns.of(plain).model_dump()
    columns = RegionColumns.model_validate_json(RegionColumns.of(told).model_dump_json())
    assert [columns.stat(place).copies_version for place in (0, 1)] == [0, 3]
    report = RegionReport(columns)
    assert [report.copies_version(name) for name in report] == [0, 3]
    assert RegionReport(RegionColumns.of(plain)).copies_version(plain[0].region_id) == 0


def test_given_a_report_at_the_limit_when_changes_add_a_region_then_one_must_be_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(region_report, "HEARTBEAT_REGIONS_MAX", 3)
    first, *others, another = stats(4)
    report = RegionReport(RegionColumns.of([first, *others]))
    at_once(report.digested())
    added = RegionColumns.of([another])

    more = report.after(ReportChanges(added, [], digest_of([first, *others, another])))
    same = report.after(ReportChanges(added, [first.region_id], digest_of([*others, another])))

    assert more is None
    assert same is not None
    assert list(same.values()) == [*others, another]
