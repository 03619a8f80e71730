"""Tables that keep a placement or a tablespace from being dropped."""

from collections.abc import Collection, Iterable, Sequence

from keys.catalog.catalog import Catalog
from keys.key import Range
from metasrv_base.errors import Conflict
from procedures.context import Context
from procedures.steps.paged_children import first_inside

NAMED_MAX = 10
"""Tables named in an error."""


async def must_be_unused(context: Context, name: str, users: Range) -> None:
    """Raises Conflict("object-in-use"), with tables that use it, while there are any.

    *users*: the range whose keys tell of them. That it is empty is compared by the transaction.
    """
    keys = await first_inside(context, users, NAMED_MAX + 1)
    refuse_if_used(
        name, [int(item.key.rpartition(b"/")[2]) for item in keys], context.ports.applied()
    )


def refuse_if_used(name: str, table_ids: Collection[int], catalog: Catalog) -> None:
    """Raises Conflict("object-in-use") if there are any. *name*: with the type of the object."""
    refuse_if_named(name, names_of(table_ids, catalog), len(table_ids))


def refuse_if_named(name: str, names: Sequence[str], count: int) -> None:
    """Raises Conflict("object-in-use") if *count*, the number of users, is above 0. *names*: the
    first of them."""
    if not count:
        return
    more = "" if count <= NAMED_MAX else " and others"
    what = f"is used by {', '.join(names)}{more}"
    raise Conflict("object-in-use", name=name, what=what, used_by=list(names))


def names_of(table_ids: Iterable[int], catalog: Catalog) -> list[str]:
    """The full names of some of them, in order of their ids."""
    first = sorted(table_ids)[:NAMED_MAX]
    tables = ((number, catalog.tables.get(number)) for number in first)
    return [
        f"table {number}" if table is None else table.info.full_name for number, table in tables
    ]
