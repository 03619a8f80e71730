"""Records the files of the product through which a call passes, in the order of the calls."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any

from tests.walks.profiling import product_file, profiled


class CallPath:
    """The files on the stack whenever one of *ends* is called: outermost first, each once.

    A task awaits inside of its callers, so its stack is the way from the task's root. What another
    task or thread does on the way has a stack of its own.
    """

    def __init__(self, *ends: Callable[..., Any]) -> None:
        self._ends = {end.__code__ for end in ends}
        self.files: list[str] = []

    def __str__(self) -> str:
        numbered = (f"{number:>4} {file}" for number, file in enumerate(self.files, 1))
        return "\n".join(("", *numbered))

    def recorded(self) -> AbstractContextManager[None]:
        return profiled(self._profile)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in self._ends:
            for file in reversed(list(_stack(frame))):
                if file not in self.files:
                    self.files.append(file)


def _stack(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        file = product_file(frame)
        if file is not None:
            yield file
        frame = frame.f_back
