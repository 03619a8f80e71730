"""Where a server is to fail: a call of a life in memory, found again in one on a real etcd.

There is no call number in common: batches are made as members come, and what waits for a lease asks
as often as the time it takes. So a call is known by its port, by the code that makes it and by the
step that it moves, and by how many like it come before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from tests.fakes.faults import Call, Mode, Plan


class Fault(TypedDict):
    """`mode` happens at the call like this one, after *skipped* others like it."""

    mode: str
    port: str
    site: list[str]
    step: str
    skipped: int


class Orders(TypedDict):
    """Instructions for a server, given when it is forked."""

    number: int
    name: str
    scenario: str
    endpoint: str
    prefix: str
    folder: str
    """Where the plane is, and the test's socket."""
    fault: Fault | None
    patience: int
    """Factor by which the deadline of a procedure is longer."""


def fault_at(calls: Sequence[Call], at: int, mode: Mode) -> Fault:
    """At call number *at* of a sound life in memory, the *calls* of which these are."""
    call = calls[at]
    fault = Fault(
        mode=mode.value,
        port=call.port,
        site=list(call.site),
        step=call.step.split("; ")[0],
        skipped=0,
    )
    fault["skipped"] = sum(is_like(earlier, fault) for earlier in calls[:at])
    return fault


def is_like(call: Call, fault: Fault) -> bool:
    """A step may be moved in other company."""
    same = (call.port, list(call.site)) == (fault["port"], fault["site"])
    return same and fault["step"] in call.step.split("; ")


@dataclass
class SoughtPlan(Plan):
    """Its mode happens at the call that is sought, whatever number it has here."""

    sought: Fault | None = None
    tell: Callable[[], None] = lambda: None
    """When it happens."""

    def meets(self, call: Call) -> bool:
        if not self.armed or self.happened or self.sought is None:
            return False
        if not is_like(call, self.sought):
            return False
        self.calls.append(call)
        self.happened = len(self.calls) > self.sought["skipped"]
        if self.happened:
            self.tell()
        return self.happened
