"""A client that writes row after row and remembers what was acknowledged."""

import threading
from dataclasses import dataclass, field
from itertools import count
from typing import Self

import httpx

from tests.node_conformance.node import Node, Write


@dataclass
class Writer:
    """A context; ends at the first answer that is not 200."""

    node: Node
    region: int
    name: str
    epoch: int = 1
    acknowledged: set[bytes] = field(default_factory=set)
    asked: set[bytes] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _progress: threading.Condition = field(default_factory=threading.Condition)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def wait_for(self, rows: int) -> None:
        with self._progress:
            enough = self._progress.wait_for(lambda: len(self.acknowledged) >= rows, 240)
        assert enough, self.failed

    def _run(self) -> None:
        for number in count(1):
            if self._stop.is_set() or self.failed:
                return
            key = f"{self.name}-{number:08d}".encode()
            self.asked.add(key)
            self._write(key, number)

    def _write(self, key: bytes, number: int) -> None:
        statement = key.decode()
        try:
            answer = self.node.post_batch(
                self.region, [Write(key, number)], statement, epoch=self.epoch
            )
        except httpx.TransportError as error:
            self.failed.append(repr(error))
            return
        if answer.status_code != 200:
            self.failed.append(answer.json()["code"])
            return
        with self._progress:
            self.acknowledged.add(key)
            self._progress.notify_all()
