"""A loop on which time passes faster: a lease of ten seconds is over in a fifth of a second.

All processes of one life use it. Its time has one start for all of a machine, so that a lease means
the same to each of them. What etcd is given as a deadline is in real seconds.
"""

import asyncio
import selectors

SPEED = 50


class _Waiting(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(None if timeout is None else timeout / SPEED)


class FastLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__(_Waiting())

    def time(self) -> float:
        return super().time() * SPEED
