"""Records the files of the product through which a call passes, in the order of the calls."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from metasrv.host.toolchain import checkout

PACKAGES = frozenset({"metasrv_base", "serving", "keys", "procedures", "metasrv", "dataplane"})


class CallPath:
    """The files on the stack whenever one of *ends* is called: outermost first, each once.

    A task awaits inside of its callers, so its stack is the way from the task's root. What another
    task or thread does on the way has a stack of its own.
    """

    def __init__(self, *ends: Callable[..., Any]) -> None:
        self._ends = {end.__code__ for end in ends}
        self._root = str(checkout()) + "/"
        self.files: list[str] = []

    def __str__(self) -> str:
        numbered = (f"{number:>4} {file}" for number, file in enumerate(self.files, 1))
        return "\n".join(("", *numbered))

    @contextmanager
    def recorded(self) -> Iterator[None]:
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in self._ends:
            for file in reversed(list(self._stack(frame))):
                if file not in self.files:
                    self.files.append(file)

    def _stack(self, frame: FrameType | None) -> Iterator[str]:
        while frame is not None:
            name = frame.f_code.co_filename.removeprefix(self._root)
            if Path(name).parts[0] in PACKAGES:
                yield name
            frame = frame.f_back
