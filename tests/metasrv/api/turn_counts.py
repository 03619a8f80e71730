"""Calls of functions, counted in each turn of the event loop."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest


class TurnCounts:
    """The most calls of a function in one turn of the event loop. Other threads do not count."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._loop = threading.get_ident()
        self._now = Counter[str]()
        self.most = Counter[str]()
        sound = asyncio.Handle._run

        def run(handle: asyncio.Handle) -> None:
            self._now.clear()
            sound(handle)

        monkeypatch.setattr(asyncio.Handle, "_run", run)

    def count(self, what: str, place: Any, name: str) -> None:
        sound: Callable[..., Any] = getattr(place, name)

        def counted(*given: Any) -> Any:
            if threading.get_ident() == self._loop:
                self._now[what] += 1
                self.most[what] = max(self.most[what], self._now[what])
            return sound(*given)

        self._patch.setattr(place, name, counted)
