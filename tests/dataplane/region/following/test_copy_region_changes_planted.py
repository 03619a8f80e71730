"""Each planted bug in how copies make changes is found by the lives of a copy."""

import pytest

from dataplane.log.records import RecordType
from dataplane.region.engine import region_changes
from dataplane.region.engine.region_changes import RegionChanges
from dataplane.region.following.copy_region import _Following
from dataplane.region.following.pending import decoded
from dataplane.region.log.logged_change import PositionedChange, with_change
from dataplane.region.manifests.manifest import Manifest
from metasrv_base.errors import MetaError
from tests.dataplane.region.following.change_lives import CopyScene

APPLY = _Following.apply


def changes_on_arrival(self: _Following, common: int) -> None:
    """Makes a change when it has come, before the rows in front of it."""
    for record in list(self.pending._streamed):
        if record.type == RecordType.CHANGE:
            entry = decoded(record)
            assert isinstance(entry, PositionedChange)
            with self.manifest.changing() as before:
                after = with_change(before, entry, self.serving.place.root)
                self.manifest.publish(after, replaced=before.files)
    APPLY(self, common)


def forgets_position(manifest: Manifest, record: PositionedChange, root: str) -> Manifest:
    """Does not note which change it was, so that a replay makes older ones again."""
    return with_change(manifest, record, root).model_copy(update={"change_sequence": 0})


def makes_nothing(self: RegionChanges, record: PositionedChange) -> None:
    """Counts the records of the log, and makes none of their changes."""
    self._content.pass_change(record.change.version)


PLANTED: dict[str, tuple[object, str, object]] = {
    "a change is made before the rows in front": (_Following, "apply", changes_on_arrival),
    "a change is made twice": (region_changes, "with_change", forgets_position),
    "changes of the log are not made": (RegionChanges, "settle", makes_nothing),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_copies_die_among_changes_then_it_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = CopyScene()
    where, name, planted = PLANTED[bug]
    monkeypatch.setattr(where, name, planted)

    with pytest.raises((AssertionError, MetaError)):
        scene.enumerate("loses all")
