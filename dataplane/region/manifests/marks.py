"""Opens and closes marks: moments that somebody still reads as of (docs/protocols.md P5). Pure."""

from dataplane.region.manifests.manifest import Manifest, Mark
from metasrv_base.errors import Conflict


def marked(manifest: Manifest, mark: Mark) -> Manifest | None:
    """None: it stands already. Raises Conflict for a moment of which versions may be gone: what a
    manifest has named was merged without it. The number is the caller's."""
    if mark in manifest.marks:
        return None
    taken = any(other.name == mark.name for other in manifest.marks)
    if taken or mark.version < manifest.version:
        newest = manifest.version
        raise Conflict("version-mismatch", mark=mark.name, version=mark.version, found=newest)
    marks = tuple(sorted((*manifest.marks, mark), key=lambda other: (other.version, other.name)))
    return manifest.model_copy(update={"marks": marks, "version": mark.version})


def version_of_mark(manifest: Manifest, name: str) -> int | None:
    """None: there is none of that name."""
    return next((mark.version for mark in manifest.marks if mark.name == name), None)


def unmarked(manifest: Manifest, name: str) -> Manifest | None:
    """None: there is none of that name."""
    kept = tuple(mark for mark in manifest.marks if mark.name != name)
    return None if kept == manifest.marks else manifest.model_copy(update={"marks": kept})
