"""Folders judged against a catalog: each proof, each claim and each reason to wait."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState, TableRoute
from metasrv_base.wire.model import INT64_END
from metasrv_base.wire.node.adoption import FoundRoot
from procedures.steps.orphans.judging import (
    Evidence,
    Judgement,
    OrphanReason,
    RegionFolder,
    WaitReason,
    judgements,
)
from tests.metasrv.nodes.samples import region

TABLE, OTHER_TABLE = 1024, 1025
REGION = str(TABLE << 32)
ROOTS = "/data/dn-1/regions"
NOW_MS, GRACE_MS = 1_000_000, 60_000


def folder(name: str) -> RegionFolder:
    return RegionFolder.named(f"{ROOTS}/{name}")


def found(**facts: object) -> FoundRoot:
    shown: dict[str, object] = {
        "region_id": REGION,
        "root": OLD.root,
        "fence_epoch": 1,
        "fence_opening": 1,
        "fenced_ms": NOW_MS - GRACE_MS,
        "opener": OLD.root,
        "manifest_epoch": 1,
    }
    return FoundRoot.model_validate(shown | facts)


def evidence(*regions: RegionRoute, **facts: object) -> Evidence:
    """The route of one table, which has no route if it has no region."""
    route = TableRoute(table_id=TABLE, version=1, region_routes=regions) if regions else None
    known = Evidence(
        version=7,
        route=lambda table_id: route if table_id == TABLE else None,
        is_busy=lambda _: False,
        seen_at=7,
    )
    return replace(known, **facts)  # type: ignore[arg-type]


def led(epoch: int = 1, **facts: object) -> RegionRoute:
    return region("dn-1", TABLE, epoch=epoch).model_copy(update=facts)


def only(subject: RegionFolder, known: Evidence) -> Judgement:
    (judged,) = judgements([subject], known)
    assert judged.folder is subject
    assert judged.orphan is None or judged.wait is None
    return judged


OLD = folder(f"{REGION}-1")
COPY = RegionCopy(node="dn-1", root=f"{ROOTS}/{REGION}-1-4", role=CopyRole.LEARNER)


@pytest.mark.parametrize(
    ("subject", "known"),
    [
        (OLD, evidence(led())),
        (OLD, evidence(led(2, borrows=(OLD.root,)))),
        (folder(f"{REGION}-1-4"), evidence(led(copies=(COPY,), copies_version=4))),
    ],
    ids=["leader", "borrowed-by-the-route", "copy"],
)
def test_given_a_folder_that_a_route_names_then_it_is_claimed(
    subject: RegionFolder, known: Evidence
) -> None:
    """A dropped table's route is a claim too: `Evidence.route` has both."""
    judged = only(subject, replace(known, is_busy=lambda _: True, seen_at=8))

    assert (judged.orphan, judged.wait, judged.is_needed) == (None, None, True)


@pytest.mark.parametrize(
    ("subject", "known", "reason"),
    [
        (OLD, evidence(), OrphanReason.NO_TABLE),
        (folder(f"{(TABLE << 32) + 1}-1"), evidence(led()), OrphanReason.NO_REGION),
        (OLD, evidence(led(2)), OrphanReason.OLD_EPOCH),
        (folder(f"{REGION}-1-4"), evidence(led(2, copies_version=5)), OrphanReason.OLD_EPOCH),
        (folder(f"{REGION}-2-4"), evidence(led(2, copies_version=5)), OrphanReason.OTHER_ROOT),
    ],
)
def test_given_proof_when_judged_then_the_folder_is_an_orphan(
    subject: RegionFolder, known: Evidence, reason: OrphanReason
) -> None:
    judged = only(subject, known)

    assert (judged.orphan, judged.wait, judged.is_needed) == (reason, None, False)


@pytest.mark.parametrize(
    ("subject", "known", "reason", "is_needed"),
    [
        (OLD, evidence(is_busy=lambda table: table == TABLE), WaitReason.BUSY, True),
        (OLD, evidence(led(2), is_busy=lambda table: table == TABLE), WaitReason.BUSY, True),
        (OLD, evidence(led(2), borrowed=frozenset({OLD.root})), WaitReason.BORROWED, True),
        (OLD, evidence(seen_at=8), WaitReason.CATALOG_OLDER, False),
        (OLD, evidence(led(2), seen_at=8), WaitReason.CATALOG_OLDER, False),
        (folder(f"{REGION}-3"), evidence(led(2)), WaitReason.CATALOG_OLDER, False),
        (
            folder(f"{REGION}-1-5"),
            evidence(led(2, copies_version=4)),
            WaitReason.CATALOG_OLDER,
            False,
        ),
        (OLD, evidence(led(2, state=RegionState.LOST)), WaitReason.LOST, False),
        (OLD, evidence(led(2, unverified=True)), WaitReason.UNVERIFIED, False),
        (OLD, evidence(is_restored=True), WaitReason.RESTORED, False),
        (OLD, evidence(led(2), unread=frozenset({led(2).root})), WaitReason.READERS, False),
        (folder("lost+found"), evidence(), WaitReason.NAME, False),
        (folder(f"{REGION}-{INT64_END}"), evidence(), WaitReason.NAME, False),
        (folder(f"{INT64_END}-1"), evidence(), WaitReason.NAME, False),
    ],
)
def test_given_a_folder_that_may_be_needed_when_judged_then_it_waits_with_its_reason(
    subject: RegionFolder, known: Evidence, reason: WaitReason, is_needed: bool
) -> None:
    judged = only(subject, known)

    assert (judged.orphan, judged.wait, judged.is_needed) == (None, reason, is_needed)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"fence_epoch": 3}, WaitReason.CATALOG_OLDER),
        ({"manifest_epoch": 3}, WaitReason.CATALOG_OLDER),
        ({"error": "torn"}, WaitReason.UNREADABLE),
        ({"opener": None, "fenced_ms": None}, WaitReason.UNREADABLE),
        ({"fenced_ms": None}, WaitReason.UNREADABLE),
        ({"fenced_ms": NOW_MS - GRACE_MS + 1}, WaitReason.YOUNG),
        ({"fenced_ms": NOW_MS + GRACE_MS}, WaitReason.YOUNG),
        ({"region_id": str(OTHER_TABLE << 32)}, WaitReason.NAME),
    ],
)
def test_given_a_folder_of_an_inventory_when_its_files_forbid_it_then_it_is_no_orphan(
    facts: dict[str, object], reason: WaitReason
) -> None:
    """Its fence or manifest may be above its name; a clock that is ahead makes it younger."""
    known = evidence(led(2), now_ms=NOW_MS, grace_ms=GRACE_MS)

    sound = only(RegionFolder.of(found()), known)
    judged = only(RegionFolder.of(found(**facts)), known)

    assert (sound.orphan, sound.wait) == (OrphanReason.OLD_EPOCH, None)
    assert (judged.orphan, judged.wait) == (None, reason)


def test_given_a_page_when_judged_then_each_table_is_looked_up_once() -> None:
    looked_up: list[int] = []

    def counted(route: Callable[[int], TableRoute | None], table_id: int) -> TableRoute | None:
        looked_up.append(table_id)
        return route(table_id)

    known = evidence(led(3))
    page = [folder(f"{REGION}-{epoch}") for epoch in (1, 2, 3)]
    page.append(folder(f"{OTHER_TABLE << 32}-1"))

    judged = list(judgements(page, replace(known, route=lambda id_: counted(known.route, id_))))

    assert looked_up == [TABLE, OTHER_TABLE]
    assert [each.orphan for each in judged] == [
        OrphanReason.OLD_EPOCH,
        OrphanReason.OLD_EPOCH,
        None,
        OrphanReason.NO_TABLE,
    ]


def test_given_a_folder_in_quarantine_whose_deletion_was_cut_then_its_name_is_judged() -> None:
    """It had a fence when it came, and the fences go last."""
    left = FoundRoot(region_id=REGION, root=OLD.root)

    judged = only(RegionFolder.of_quarantined(left), evidence(led(2)))
    elsewhere = only(RegionFolder.of(left), evidence(led(2)))
    torn = RegionFolder.of_quarantined(found(opener=None))
    unread = RegionFolder.of_quarantined(left.model_copy(update={"error": "EIO"}))

    assert (judged.orphan, elsewhere.wait) == (OrphanReason.OLD_EPOCH, WaitReason.UNREADABLE)
    assert only(torn, evidence(led(2))).wait is WaitReason.UNREADABLE
    assert only(unread, evidence(led(2))).wait is WaitReason.UNREADABLE
