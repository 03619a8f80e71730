"""Looking at a real cluster: nodes and servers over HTTP, files by an inspector on this host."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from keys.model.cluster import NodeRecord
from metasrv.check.check_input import NodeReport, ServerReport, reason_of
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.token import LOOPBACK
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.inspect import Inspection, InspectRequest

M = TypeVar("M", bound=BaseModel)

ASK_DEADLINE_MS = 3_000
"""A node that runs answers within milliseconds; all that are down are waited for together."""
NO_ANSWER = "no answer"
INSPECT_S_MAX = 1_800  # of one node: every byte under its root is read, with --deep every value
INSPECTOR = "dataplane.region.check.inspect"  # a program of the data plane, started by its name
INSTALLED_IN = Path(__file__).resolve().parents[2]


class RealEyes:
    """Implements metasrv.check.collect.Inspector. *urls*: metasrv servers to ask; may be none."""

    def __init__(
        self,
        urls: Sequence[str],
        token: str | None = None,
        *,
        ask_deadline_ms: int = ASK_DEADLINE_MS,
    ) -> None:
        self._ask_deadline_ms = ask_deadline_ms
        self._urls = tuple(urls)
        self._token = token
        self._silent: set[str] = set()
        """URLs that did not answer: they are not waited for again when a finding is confirmed."""

    async def report(self, node: NodeRecord) -> NodeReport:
        return await self._ask(node.address, "/node/v1/regions", NodeReport)

    async def servers(self) -> Mapping[str, ServerReport | str]:
        answers: dict[str, ServerReport | str] = {}
        for url in self._urls:
            try:
                answers[url] = await self._ask(url, "/v1/cluster", ServerReport)
            except Unavailable as error:
                answers[url] = f"not asked: {reason_of(error)}"
        return answers

    async def inspect(self, node: NodeRecord, request: InspectRequest) -> Inspection:
        host = urlsplit(node.address).hostname
        is_here = host in LOOPBACK or await asyncio.to_thread(Path(node.root).is_dir)
        if not is_here:
            raise Unavailable(what=node.root, reason="it is not on this host")
        inspection_json = await _inspector(node.root, request.model_dump_json().encode())
        try:
            return Inspection.model_validate_json(inspection_json)
        except ValidationError as error:
            raise Unavailable(
                what=node.root, reason="its inspector gave an answer that cannot be read"
            ) from error

    async def _ask(self, url: str, path: str, model: type[M]) -> M:
        """Returns the answer of a server or node. Raises Unavailable for any fault of the
        answer."""
        if url in self._silent:
            raise Unavailable(what=url, reason=NO_ANSWER)
        async with HttpClient([url], token=self._token) as client:
            try:
                answer = await client.request("GET", path, deadline_ms=self._ask_deadline_ms)
                return answer.body(model)
            except MetaError as error:
                if client.has_answered:
                    raise Unavailable(what=url, reason=f"it answered {error.code}") from error
                self._silent.add(url)
                raise Unavailable(what=url, reason=NO_ANSWER) from error


async def _inspector(root: str, request: bytes) -> bytes:
    async with _started(root) as process:
        try:
            async with asyncio.timeout(INSPECT_S_MAX):
                inspection_json, complaint = await process.communicate(request)
        except TimeoutError as error:
            raise Unavailable(what=root, reason=f"not read in {INSPECT_S_MAX} s") from error
    if process.returncode != 0:
        last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        raise Unavailable(what=root, reason=f"its inspector ended: {last}")
    return inspection_json


@asynccontextmanager
async def _started(root: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Ended with the block, however that ends."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", INSPECTOR, root),
        cwd=INSTALLED_IN,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
