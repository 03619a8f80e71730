"""A kind whose steps wait for their gates: what runs, and what waits, is up to the test."""

import asyncio
from dataclasses import dataclass, field

from keys.model.records import Lock, Resource
from metasrv_base.errors import MetaError
from procedures.context import Context
from procedures.kinds.registry import KINDS
from procedures.locking.locks import exclusive
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Step


class Gate(ProcedureState):
    name: str
    locks: tuple[str, ...] = ()


@dataclass
class Gates:
    """Two steps: `first` can be undone, `second` comes after the point of no return."""

    open: dict[str, asyncio.Event] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    fails: set[str] = field(default_factory=set)
    """Names whose step raises what no step may raise."""
    twice: set[str] = field(default_factory=set)
    """Names whose first step runs twice."""
    trouble: dict[str, MetaError] = field(default_factory=dict)
    """Name, of a step or an undo -> what it raises as long as this stands here."""

    def gate(self, name: str) -> asyncio.Event:
        return self.open.setdefault(name, asyncio.Event())

    async def first(self, state: Gate, at: Context) -> Outcome[Gate]:
        self.ran.append(state.name)
        if state.name in self.fails:
            raise ZeroDivisionError
        self._raise_trouble(state.name)
        await self.gate(state.name).wait()
        if state.name in self.twice:
            self.twice.remove(state.name)
            return Goto("first", state)
        return Goto("second", state)

    async def second(self, state: Gate, at: Context) -> Outcome[Gate]:
        self.ran.append(f"{state.name} again")
        self._raise_trouble(f"{state.name} again")
        await self.gate(f"{state.name} again").wait()
        return Done(state, {"name": state.name})

    async def undo(self, state: Gate, at: Context) -> None:
        self.ran.append(f"undo {state.name}")
        self._raise_trouble(f"undo {state.name}")
        await self.gate(f"undo {state.name}").wait()

    def _raise_trouble(self, name: str) -> None:
        if name in self.trouble:
            raise self.trouble[name]

    def kinds(self) -> dict[str, Kind[Gate]]:
        def locks(state: Gate) -> tuple[Lock, ...]:
            return tuple(exclusive(key) for key in state.locks)

        def resource(state: Gate) -> Resource:
            return Resource(type="gate", id=state.name, name=state.name)

        gate = Kind(
            name="gate",
            state=Gate,
            steps={
                "first": Step(
                    self.first, to=frozenset({"first", "second"}), undo=self.undo, paced=True
                ),
                "second": Step(self.second),
            },
            no_return="first",
            locks=locks,
            resource=resource,
            success=200,
        )
        return {**KINDS, "gate": gate}
