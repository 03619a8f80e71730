"""Opens and closes marks: moments that somebody still reads as of (docs/protocols.md P5). Pure."""

from dataplane.region.manifests.manifest import Manifest, Mark
from metasrv_base.errors import Conflict


def marked(manifest: Manifest, mark: Mark) -> Manifest | None:
    """Opens a mark; returns None if it stands already. The number of the manifest is the caller's.

    Raises Conflict for a version below those that a manifest has named: rows of that version may be
    gone, since they were merged without the mark.
    """
    if mark in manifest.marks:
        return None
    is_taken = any(other.name == mark.name for other in manifest.marks)
    if is_taken or mark.version < manifest.version:
        newest = manifest.version
        raise Conflict("version-mismatch", mark=mark.name, version=mark.version, found=newest)
    marks = tuple(sorted((*manifest.marks, mark), key=lambda other: (other.version, other.name)))
    return manifest.model_copy(update={"marks": marks, "version": mark.version})


def version_of_mark(manifest: Manifest, name: str) -> int | None:
    """Returns the version of a mark; None if there is none of that name."""
    return next((mark.version for mark in manifest.marks if mark.name == name), None)


def unmarked(manifest: Manifest, name: str) -> Manifest | None:
    """Closes a mark; returns None if there is none of that name."""
    kept = tuple(mark for mark in manifest.marks if mark.name != name)
    return None if kept == manifest.marks else manifest.model_copy(update={"marks": kept})
