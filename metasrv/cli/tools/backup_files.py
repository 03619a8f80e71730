"""Backups as files: written while they are judged, read with their progress."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import typer

from metasrv.cli.progress import bar
from metasrv.cli.rows.whole_file import whole_file
from metasrv.sdk.sync import Client
from metasrv_base.backup.backup_file import BackupHeader
from metasrv_base.backup.backup_reader import BackupReader
from metasrv_base.errors import MetaError

if TYPE_CHECKING:
    from metasrv.restore.backup_facts import BackupFacts

MODE = 0o600
"""A backup holds names, comments and addresses: it is for its owner alone."""
ATTEMPTS = 3
"""Backups that are begun in all, while etcd is compacted under each."""
READ_BYTES = 1 << 20


def download(client: Client, file: Path) -> BackupHeader:
    """Begins again while etcd is compacted under it: ATTEMPTS times in all."""
    for left in reversed(range(ATTEMPTS)):
        try:
            with whole_file(file, MODE) as out:
                return _checked(client, out, f"backup {file}")
        except MetaError as error:
            if error.code != "history-expired" or not left:
                raise
            typer.echo("etcd was compacted while it was read; it begins again", err=True)
    raise AssertionError


def _checked(client: Client, out: BinaryIO, words: str) -> BackupHeader:
    """Writes a backup and reads it while it is written."""
    reader = BackupReader()
    with bar(words) as shown:
        for part in client.backups.download():
            out.write(part)
            for _ in reader.feed(part):
                pass
            shown.tell(words, reader.keys, None if reader.header is None else reader.header.keys)
    return reader.close()


def pieces(opened: BinaryIO, words: str) -> Iterator[bytes]:
    """Progress counts bytes."""
    size, done = os.fstat(opened.fileno()).st_size, 0
    with bar(words) as shown:
        while piece := opened.read(READ_BYTES):
            yield piece
            done += len(piece)
            shown.tell(words, done, size)


def source_facts(facts: "BackupFacts") -> dict[str, object]:
    """A backup that was read, as it is shown."""
    source = facts.source
    return {
        "cluster_id": source.cluster_id,
        "revision": source.revision,
        "keys": facts.keys,
        "made_at": _time_of(source.made_at_ms),
    }


def _time_of(wall_ms: int) -> str:
    made_at = datetime.fromtimestamp(wall_ms / 1000, UTC)
    return made_at.isoformat(timespec="seconds").replace("+00:00", "Z")


def facts_of(header: BackupHeader) -> dict[str, object]:
    return {
        "cluster_id": header.cluster_id,
        "revision": header.revision,
        "keys": header.keys,
        "made_at": _time_of(header.made_at_ms),
        "made_by": f"metasrv {header.made_by}",
    }
