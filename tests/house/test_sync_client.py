"""The synchronous client does all that the asynchronous one does, and says the same of it."""

import ast
import inspect

import pytest

from metasrv.sdk import sync_events, sync_operations, sync_table, sync_tables
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.control import batches, events, namespaces, operations, tables
from metasrv.sdk.rows.table import AsyncTable
from metasrv.sdk.sync import Client
from scripts.sync_client import sync_method

SOURCES = (tables, namespaces, batches)
PAIRS = [
    (Client, AsyncClient),
    (sync_table.Table, AsyncTable),
    (sync_events.SyncEventStream, events.EventStream),
    *(
        (made, next(vars(each)[name[4:]] for each in SOURCES if name[4:] in vars(each)))
        for name, made in vars(sync_tables).items()
        if name[:4] == "Sync"
    ),
    *(
        (made, getattr(operations, name[4:]))
        for name, made in vars(sync_operations).items()
        if name[:4] == "Sync"
    ),
]
INSIDE = {"clock", "binding", "expect_running"}
"""Names that tests and the SDK itself use. `Client` calls `expect_running` at its start."""


def public(kind: type) -> dict[str, object]:
    every = {name: value for part in reversed(kind.__mro__) for name, value in vars(part).items()}
    return {name: value for name, value in every.items() if name[0] != "_" and name not in INSIDE}


@pytest.mark.parametrize(("made", "origin"), PAIRS, ids=lambda kind: kind.__name__)
def test_given_an_asynchronous_class_then_the_synchronous_one_has_its_methods(
    made: type, origin: type
) -> None:
    assert public(made).keys() == public(origin).keys()
    assert public(origin)


@pytest.mark.parametrize(("made", "origin"), PAIRS[1:], ids=lambda kind: kind.__name__)
def test_given_a_method_then_the_synchronous_one_says_the_same_and_waits(
    made: type, origin: type
) -> None:
    ours = public(made)
    for name, method in public(origin).items():
        assert inspect.getdoc(ours[name]) == inspect.getdoc(method)
        assert not inspect.iscoroutinefunction(ours[name])
        if inspect.isfunction(method):
            assert list(inspect.signature(ours[name]).parameters) == list(  # type: ignore[arg-type]
                inspect.signature(method).parameters
            )


@pytest.mark.parametrize(
    ("text", "body"),
    [
        (
            "async def a(self, b: int, *, c: str = 'x', **d: E) -> F: ...",
            "return self._portal.call(self._origin.a(b, c=c, **d))",
        ),
        ("async def a(self) -> None: ...", "self._portal.call(self._origin.a())"),
        (
            "async def a(self) -> AsyncGenerator[F, None]: ...",
            "return self._portal.each(self._origin.a())",
        ),
        ("@overload\nasync def a(self) -> F: ...", "..."),
        ("@property\ndef a(self) -> F: ...", "return self._origin.a"),
    ],
)
def test_given_a_method_when_made_synchronous_then_it_calls_the_other(text: str, body: str) -> None:
    (method,) = ast.parse(text).body
    assert isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)

    made = sync_method(method)

    assert [ast.unparse(statement) for statement in made.body] == [body]
