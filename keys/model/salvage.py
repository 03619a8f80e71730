"""Reads of a procedure's record what can be read, whoever wrote it and whatever became of it.

A record of a newer format, or one that was damaged, is parked: nobody runs it, nobody rewrites it,
and its locks are held. So its locks and its place among them are read from the text itself, where
the whole does not make sense.
"""

import re
import sys
from typing import ClassVar

from pydantic import ConfigDict

from keys.model.records import (
    ClientRequirements,
    Lock,
    LockMode,
    ProcedureKey,
    ProcedurePhase,
    ProcedureRecord,
    Resource,
)
from keys.value import decode
from metasrv_base.errors import Corrupt

UNREADABLE = "unreadable"  # kind and step of a record whose own cannot be read
_NUMBER = re.compile(rb'"submission"\s*:\s*([0-9]{1,18})\b')
_LOCK = re.compile(
    rb'\{\s*"key"\s*:\s*"'
    rb'((?:catalog|schema|name):[A-Za-z0-9_.-]{1,512}|(?:table|route|region):[0-9]{1,18})"'
    rb'(?:\s*,\s*"mode"\s*:\s*"(shared|exclusive)")?'
)


class _AnyRecord(ProcedureRecord):
    newest_format: ClassVar[int] = sys.maxsize

    model_config = ConfigDict(extra="ignore")


def salvaged(key: ProcedureKey, raw: bytes) -> ProcedureRecord:
    """Returns as much of a record as this server understands; of a damaged one, its locks and
    number."""
    try:
        return decode(_AnyRecord, raw, key=str(key))
    except Corrupt:
        return _damaged(key, raw)


def number_in(raw: bytes) -> int:
    """The submission number; 0 if none can be read: it then goes before all others."""
    match = _NUMBER.search(raw)
    return int(match[1]) if match else 0


def _damaged(key: ProcedureKey, raw: bytes) -> ProcedureRecord:
    locks = {match[1].decode(): match[2] for match in _LOCK.finditer(raw)}
    return ProcedureRecord(
        kind=UNREADABLE,
        kind_format=1,
        step=UNREADABLE,
        phase=ProcedurePhase.FORWARD,
        state={},
        submission=number_in(raw),
        locks=tuple(
            Lock(key=name, mode=LockMode.SHARED if mode == b"shared" else LockMode.EXCLUSIVE)
            for name, mode in locks.items()
        ),
        resource=Resource(type=UNREADABLE, id=key.procedure, name=UNREADABLE),
        client=ClientRequirements(submitted_by=UNREADABLE, request_id="", statement={}),
        submitted_at_ms=0,
        deadline_at_ms=0,
    )
