"""Backups of the service's metadata."""

from collections.abc import AsyncGenerator

import httpx

from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.http.download import download


class Backups:
    """`client.backups`."""

    def __init__(self, http: HttpClient, transport: httpx.AsyncBaseTransport | None) -> None:
        self._http = http
        self._transport = transport

    async def download(self) -> AsyncGenerator[bytes, None]:
        """Yields a new backup, part by part: every key of the cluster at one revision, as
        `metasrv_base.backup.backup_reader.BackupReader` reads it. Let it judge the whole before you
        trust it: a backup that was cut has no end.

        Raises Unavailable if no server could begin one, or the connection broke.
        """
        async for part in download(self._http, "/v1/backups", self._transport):
            yield part
