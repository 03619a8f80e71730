"""The parts of an open region and its locks, and the one way to its next manifest."""

import threading
from contextlib import AbstractContextManager

from dataplane.region.compaction.flush import Frozen
from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.opening import OpenedRegion
from dataplane.region.engine.serving import Serving
from dataplane.region.engine.shape import BatchShape
from dataplane.region.format.columns import RegionSpec
from dataplane.region.format.names import Opening
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.log_writer import LogWriter
from dataplane.region.manifests.fence import stale_before_wrong
from dataplane.region.manifests.housekeeping import remove_superseded
from dataplane.region.manifests.manifest import Manifest, publish_manifest
from dataplane.region.place import RegionPlace
from metasrv_base.errors import MetaError


class Core:
    """Locks are taken in this order: who merges files, who flushes, who writes manifests, who
    orders batches; then the content's own."""

    def __init__(self, place: RegionPlace, opened: OpenedRegion) -> None:
        self.place = place
        self.opening: Opening = opened.mine
        self._merging = threading.Lock()
        self._flushing = threading.Lock()
        self._publishing = threading.Lock()
        self._writing = threading.Lock()
        self._manifest: Manifest = opened.manifest
        self._manifest_number = opened.manifest.number
        self._content = RegionContent(place, opened)
        self._log = LogWriter(place.disk, place.root, self.spec.region_id, opened.mine)
        self._statement_files = opened.statement_files
        self._serving = Serving()
        self._shape: BatchShape | None = None
        """The shape of the batches that are taken. It is made anew when the columns change."""

    @property
    def spec(self) -> RegionSpec:
        return self._manifest.spec

    @property
    def manifest(self) -> Manifest:
        """The current one. Frozen: a copy is not needed."""
        return self._manifest

    @property
    def schema(self) -> RegionSchema:
        return self._content.schema

    @property
    def schema_floor(self) -> int:
        return self.schema.floor

    @property
    def stopped(self) -> MetaError | None:
        """Why this opening serves no more; None: it serves."""
        return self._serving.stopped

    def _publish(self, manifest: Manifest, flushed: Frozen | None = None) -> None:
        """Writes first, looks second, deletes third. `_publishing` is held."""
        self._manifest_number += 1
        manifest = manifest.model_copy(update={"number": self._manifest_number})
        with self._serving.in_doubt(), self._stale_first():
            publish_manifest(self.place.disk, self.place.root, manifest)
            remove_superseded(self.place.disk, self.place.root, manifest)
        self._manifest = manifest
        self._content.follow(manifest, flushed)

    def _stale_first(self) -> AbstractContextManager[None]:
        return stale_before_wrong(self.place.disk, self.place.root, self.opening)
