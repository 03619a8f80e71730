"""The files behind a leader's manifest, in the order in which a copy session numbers them.

The leader and the copy derive the order from the manifest, which is itself file MANIFEST_FILE of
the session: so no list of files travels beside it. Pure.
"""

from typing import NamedTuple

from dataplane.region.manifests.manifest import Manifest

MANIFEST_FILE = 0
"""The number of the manifest, encoded as it is on disk."""


class SessionFile(NamedTuple):
    """A file of the leader, and its content by the manifest."""

    root: str | None
    """The root that holds it; None: the leader's own."""
    name: str
    """Relative to that root."""
    bytes: int
    crc32: str


def files_of(manifest: Manifest) -> list[SessionFile]:
    """Files by number, from 1 on: those of statements come first, since the next flush of the
    leader may replace them, then data files in the order of the manifest."""
    statements = [
        SessionFile(None, each.name, each.bytes, each.crc32) for each in manifest.statement_files
    ]
    data = [SessionFile(each.root, each.name, each.bytes, each.crc32) for each in manifest.files]
    return statements + data
