"""A copy takes the files that it has fetched, by one manifest: fence, verify, publish (P5.9).

From then on it has what the files have, and nothing of its old log or files. A leader's files have
only what is common to its set, so nothing that counts is given up: what the copy knew as common is
in them.
"""

from dataplane.log.records import LogPosition
from dataplane.region.engine.takeover import claim_roots
from dataplane.region.fetching.file_fetch import FileFetch
from dataplane.region.files.file_reader import FileReader
from dataplane.region.manifests.fence import stale_before_wrong
from dataplane.region.manifests.housekeeping import remove_superseded
from dataplane.region.manifests.manifest import Manifest, publish_manifest
from dataplane.region.memory.statement_files import StatementFiles
from dataplane.region.memory.statements import StatementMemory
from dataplane.region.place import OpenOrder
from metasrv_base.errors import Corrupt


def install(fetch: FileFetch, region_id: int, epoch: int, common: int) -> Manifest:
    """Returns the manifest, which is published. *epoch*: of the leader; *common*: the highest
    sequence that the copy knows as common.

    Raises Conflict `stale-epoch` behind a higher fence, Unavailable `region-lost` or Corrupt where
    a file is not there in its size, Corrupt for files of another region or epoch, and for files
    that lack what was common. Then nothing has changed but the fence.
    """
    assert not fetch.missing, "no manifest names what has not arrived"
    leader, region_place = fetch.manifest, fetch.place
    position = reached_by(leader)
    if leader.spec.region_id != region_id or leader.epoch != epoch or position.sequence < common:
        facts = {"region_id": leader.spec.region_id, "epoch": leader.epoch, "common": common}
        raise Corrupt(root=fetch.source, sequence=position.sequence, **facts)
    fetch.sync()
    mine = claim_roots(region_place, OpenOrder(region_id, epoch)).mine.of
    with stale_before_wrong(region_place.disk, region_place.root, mine):
        files = fetch.local_files()
        for entry in files:
            FileReader(region_place.files, entry).verify_present()
        statements = StatementMemory(region_place.limits.statements, leader.forgotten_ms)
        for _, records in sorted(fetch.statements.items()):
            statements.load(records)
        written = StatementFiles(region_place.disk, region_place.root, mine)
        manifest = leader.model_copy(
            update={
                "epoch": mine.epoch,
                "opening": mine.number,
                "number": 1,
                "sequence": position.sequence,
                "log_from": 1,
                "files": tuple(files),
                "sealed": (),
                "statements": (),
                "statement_files": written.write(statements.tables),
            }
        )
        written.close()
        publish_manifest(region_place.disk, region_place.root, manifest)
        remove_superseded(region_place.disk, region_place.root, manifest)
    return manifest


def reached_by(manifest: Manifest) -> LogPosition:
    """The position up to which the files have all records."""
    assert manifest.in_files is not None, "a fetch has such a manifest alone"
    return LogPosition(manifest.in_files.epoch, manifest.in_files.sequence)
