"""The manifest by which an open region serves, and the one way to its next."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dataplane.region.compaction.flush import Frozen
from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.serving import Serving
from dataplane.region.manifests.housekeeping import remove_superseded
from dataplane.region.manifests.manifest import FileEntry, Manifest, publish_manifest


class CurrentManifest:
    """Safe for threads: one thread changes it at a time, and readers take no lock.

    Invariant: `value` is on disk, and the content has followed it.
    """

    def __init__(self, serving: Serving, content: RegionContent, manifest: Manifest) -> None:
        self._serving = serving
        self._content = content
        self._lock = threading.Lock()
        self._number = manifest.number
        """The highest number that was tried. One that failed is not given again."""
        self._value = manifest

    @property
    def value(self) -> Manifest:
        """Frozen: a copy is not needed."""
        return self._value

    @contextmanager
    def unchanged(self) -> Iterator[Manifest]:
        """Keeps other threads from publishing within the block."""
        with self._lock:
            yield self._value

    @contextmanager
    def changing(self) -> Iterator[Manifest]:
        """Keeps other threads from publishing, as `unchanged` does, if the region serves; else
        raises the reason."""
        with self._lock:
            self._serving.check()
            yield self._value

    def publish(
        self,
        manifest: Manifest,
        flushed: Frozen | None = None,
        replaced: Iterable[FileEntry] = (),
    ) -> None:
        """Writes first, looks second, deletes third. Called within `changing`.

        The manifest gets the next number. `flushed`: rows in memory that its files hold;
        `replaced`: files that go, unless it names them, when nobody reads them any more.
        """
        assert self._lock.locked(), "only within `changing`"
        self._number += 1
        manifest = manifest.model_copy(update={"number": self._number})
        disk, root = self._serving.place.disk, self._serving.place.root
        with self._serving.in_doubt():
            with self._serving.stale_first():
                publish_manifest(disk, root, manifest)
                remove_superseded(disk, root, manifest)
            self._value = manifest
            self._content.follow(manifest, flushed, replaced)
