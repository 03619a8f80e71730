"""Kinds that create, alter, rename and drop a named object of the catalog that tables use.

Such an object has a name that may change, an id that never does, and users: it is dropped only
while no table uses it. Each kind is one transaction, under the exclusive lock of the object's name.
A create of a table holds a shared lock of the name, and compares the object that it was judged by.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from keys.catalog.catalog import Catalog
from keys.commit.txn import NOTHING
from keys.key import Key, Range
from keys.model.records import Lock, Resource
from keys.value import StoredModel
from procedures.commands.command import CatalogCommand, change_of
from procedures.context import Context
from procedures.machine import Act, Done, Kind, Outcome, ProcedureState, Step
from procedures.steps.requirements import ends_if_missing, require_same_version
from procedures.steps.users import must_be_unused

S = TypeVar("S", bound=ProcedureState)
Info = TypeVar("Info", bound=StoredModel)


class CreatesNamed(ProcedureState, Generic[Info]):
    """The state of a kind that creates one."""

    info: Info
    if_not_exists: bool = False
    """An equal object of that name is success, and nothing is changed."""


CommandOf = Callable[[S, Catalog], CatalogCommand]
"""Returns the command of a state; the catalog is that which this server has applied."""


@dataclass(frozen=True, slots=True)
class NamedObjects:
    """One type of such objects. A *subject* is a stored value of the object, or the state of a
    procedure about it: both bear its name and its id."""

    word: str
    """The type, as in the names of kinds and in errors: `placement`."""
    id_of: Callable[[Any], int]
    full_name: Callable[[Any, str], str]
    """Returns the full name that the subject has under a name."""
    key: Callable[[Any], Key[Any]]
    """Returns the key of the stored value that bears the subject's name."""
    users: Callable[[int], Range]
    """Returns the range of keys, one for each table that uses the object of an id."""
    locks: Callable[[Any, tuple[str, ...]], tuple[Lock, ...]]
    """Returns the locks of a change of the subject under these names."""

    def resource(self, subject: Any) -> Resource:
        name = self.full_name(subject, subject.name)
        return Resource(type=self.word, id=str(self.id_of(subject)), name=name)

    def result(self, subject: Any, name: str) -> dict[str, object]:
        return {f"{self.word}_id": self.id_of(subject), "name": self.full_name(subject, name)}


def create_kind(objects: NamedObjects, state: type[S], command: CommandOf[S]) -> Kind[S]:
    """*state* has the new stored value as `info`. The result is that of the object that is there
    already where the command changes nothing."""

    async def create(state: S, context: Context) -> Outcome[S]:
        """Creates the object in one transaction, or writes nothing if `if_not_exists` finds it."""
        planned, info = command(state, context.ports.applied()), _info(state)
        snapshot = await context.snapshot(*planned.keys())
        txn = change_of(planned, snapshot)
        existing = snapshot.get(objects.key(info)) or info
        result = objects.result(existing, info.name)
        return Done(state, result, txn if txn.entries else NOTHING)

    return Kind(
        name=f"create_{objects.word}",
        state=state,
        steps={"create": Step(create)},
        no_return="create",
        locks=lambda state: objects.locks(_info(state), (_info(state).name,)),
        resource=lambda state: objects.resource(_info(state)),
        success=201,
        purpose=f"creates a {objects.word}, which tables that are created later may use.",
    )


def alter_kind(objects: NamedObjects, state: type[S], command: CommandOf[S]) -> Kind[S]:
    purpose = f"changes properties of a {objects.word}; its name and id stay as they are."
    return _changing(objects, "alter", state, _change(objects, command), purpose)


def rename_kind(objects: NamedObjects, state: type[S], command: CommandOf[S]) -> Kind[S]:
    """*state* also has a `new_name`; its lock is held as well."""
    purpose = f"gives a {objects.word} another name; tables that use it know it by its id."
    return _changing(objects, "rename", state, _change(objects, command), purpose)


def drop_kind(objects: NamedObjects, state: type[S], command: CommandOf[S]) -> Kind[S]:
    drop = _change(objects, command)

    async def drop_unused(state: S, context: Context) -> Outcome[S]:
        """Drops the object in one transaction. Raises Conflict while a table uses it."""
        done, resource = await drop(state, context), objects.resource(state)
        users = objects.users(objects.id_of(state))
        await must_be_unused(context, f"{objects.word} {resource.name}", users)
        return done

    purpose = f"drops a {objects.word} that no table uses."
    return _changing(objects, "drop", state, drop_unused, purpose)


def _change(objects: NamedObjects, command: CommandOf[S]) -> Act[S]:
    async def change(state: S, context: Context) -> Outcome[S]:
        """Changes the object in one transaction, or writes nothing if it is as asked already.
        Raises Conflict if it is not at the version that the client required."""
        planned = command(state, context.ports.applied())
        snapshot = await context.snapshot(*planned.keys())
        existing = snapshot.get(objects.key(state))
        if existing is not None:
            name = objects.full_name(existing, existing.name)
            require_same_version(context.client, name, existing.version)
        txn = change_of(planned, snapshot)
        result = objects.result(state, _names(state)[-1])
        return Done(state, result, txn if txn.entries else NOTHING)

    return change


def _changing(
    objects: NamedObjects, verb: str, state: type[S], act: Act[S], purpose: str
) -> Kind[S]:
    return Kind(
        name=f"{verb}_{objects.word}",
        state=state,
        steps={verb: Step(ends_if_missing(act, objects.resource))},
        no_return=verb,
        locks=lambda state: objects.locks(state, _names(state)),
        resource=objects.resource,
        success=204 if verb == "drop" else 200,
        purpose=purpose,
    )


def _info(state: Any) -> Any:
    return state.info


def _names(state: Any) -> tuple[str, ...]:
    """The name, then the new one where there is one and it is another."""
    return tuple(dict.fromkeys((state.name, getattr(state, "new_name", state.name))))
