"""A server's way to the test and back: JSON lines over a socket."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any


@dataclass
class Door:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int
    """Number of the server."""

    def tell(self, what: str, **facts: object) -> None:
        """It is on its way when this returns, even if we die next."""
        line = json.dumps({"number": self.number, "tells": what, **facts})
        self.writer.write(line.encode() + b"\n")

    async def listen(self, obey: Callable[[str, str], Coroutine[Any, Any, None]]) -> None:
        """*obey* is handed what is to be done, and for which procedure, if for one."""
        async with asyncio.TaskGroup() as tasks:
            while line := await self.reader.readline():
                asked = json.loads(line)
                tasks.create_task(obey(asked["do"], asked["procedure"]))
