"""A server of the catalog's feed whose lines a test writes."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import httpx

from metasrv_base.wire.frontend.feed import FeedLine

URLS = ("http://one", "http://two")


Script = Sequence[FeedLine | str]


class Lines(httpx.AsyncByteStream):
    def __init__(self, script: Script) -> None:
        self._script = script

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for line in self._script:
            if isinstance(line, str):
                await asyncio.get_running_loop().create_future()
            else:
                yield line.model_dump_json().encode() + b"\n"
