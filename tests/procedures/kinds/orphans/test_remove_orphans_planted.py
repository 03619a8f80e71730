"""Bugs by which an orphan is deleted that a route names again, and what finds them."""

from collections.abc import Iterable, Iterator, Mapping

import pytest

from keys.commit.txn import Snapshot, Txn
from procedures.kinds.orphans import remove_orphans
from procedures.steps.orphans import proofs
from procedures.steps.orphans.judging import Evidence, Judgement, OrphanReason, RegionFolder
from tests.procedures.kinds.orphans.orphan_lives import life, name_again, named_meanwhile
from tests.procedures.kinds.orphans.orphan_scenarios import DELETE, LEFT


class Uncompared(Txn):
    """Commits the proof whatever became of the routes that it rests on."""

    @classmethod
    def on(cls, read_set: Snapshot) -> Txn:
        return Txn()


def proved_before(folders: Iterable[RegionFolder], evidence: Evidence) -> Iterator[Judgement]:
    """Takes the proof by which a folder came into quarantine to hold for ever."""
    return (Judgement(folder, orphan=OrphanReason.OTHER_ROOT) for folder in folders)


PLANTED: Mapping[str, tuple[object, str, object]] = {
    "a route that a proof rests on is not compared": (remove_orphans, "Txn", Uncompared),
    "a folder in quarantine is not judged again": (proofs, "judgements", proved_before),
}


def deleted_although_named() -> bool:
    """Whether a folder is deleted that a route names again, before it is judged or meanwhile."""
    ends = [life(DELETE, name_again), named_meanwhile()]
    return any(LEFT not in end.quarantined for end in ends)


def test_given_no_bug_when_a_route_names_a_folder_again_then_it_is_kept() -> None:
    assert not deleted_although_named()


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_a_route_names_a_folder_again_then_its_deletion_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*PLANTED[bug])

    assert deleted_although_named()
