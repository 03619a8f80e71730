"""Every error we raise on purpose answers one question: was it done, and may I try again?

MetaError
├── Refused        not done, and never will be as asked     NotFound
├── Conflict       not done: the state changed; read again  NotLeader
├── Unavailable    not done: never attempted; send it again
├── Unknown        perhaps done; settled as docs/protocols.md P1 says, never guessed
└── Corrupt        stored data is damaged; call an operator

The class says what a caller may do; `code`, one of the closed list in
metasrv_base/wire/problem/problems.py, says what happened. Facts are named values that are safe to
show; prose is made from them in one place.
"""

from collections.abc import Collection
from typing import ClassVar


class MetaError(Exception):
    """An outcome that is not success. Raised only as one of the five classes below."""

    default_code: ClassVar[str] = "internal"

    def __init__(self, code: str | None = None, /, **facts: object) -> None:
        self.code: str = code or self.default_code
        self.facts: dict[str, object] = facts
        super().__init__(self.code, facts)

    def __str__(self) -> str:
        """A sentence, then the code and the facts that are not in it."""
        sentence, named = self._sentence()
        rest = {name: value for name, value in self.facts.items() if name not in named}
        shown = [self.code, *(f"{name}={value!r}" for name, value in rest.items())]
        return f"{sentence} ({', '.join(shown)})"

    def _sentence(self) -> tuple[str, Collection[str]]:
        """The service's own words if it said any; else what was expected where. With the names of
        the facts in it."""
        if isinstance(detail := self.facts.get("detail"), str):
            return detail, {"detail"}
        if isinstance(self, NotFound) and {"what", "name"} <= self.facts.keys():
            return f"There is no {self.facts['what']} {self.facts['name']}.", {"what", "name"}
        words = self.code.replace("-", " ").capitalize()
        if "pointer" in self.facts:
            words += f" at {self.facts['pointer']}"
        named = [name for name in ("expected", "found", "reason") if name in self.facts]
        shown = [
            str(self.facts[name]) if name == "reason" else f"{name} {self.facts[name]}"
            for name in named
        ]
        return f"{words}{': ' if named else ''}{', '.join(shown)}.", {"pointer", *named}


class Refused(MetaError):
    """The request was not executed and never will be: the client must change it."""

    default_code = "invalid-request"


class NotFound(Refused):
    """The thing named does not exist."""

    default_code = "not-found"


class Conflict(MetaError):
    """The request was not executed: the state has changed or is busy. Read again and decide
    again."""

    default_code = "version-mismatch"


class NotLeader(Conflict):
    """This server may not do it: it does not lead, or its fence is lost."""

    default_code = "not-leader"


class Unavailable(MetaError):
    """Never attempted; the same request may be sent again."""

    default_code = "not-ready"


class Unknown(MetaError):
    """Perhaps done. Settled by sending the same bytes again (P1), never by a guess."""

    default_code = "outcome-unknown"


class Corrupt(MetaError):
    """Our own data contradicts itself. Nothing is repaired silently."""

    default_code = "internal"
