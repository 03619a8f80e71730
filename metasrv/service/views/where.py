"""A filter of rows: the conditions of CHECK, over the columns of a view. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from metasrv.service.views.scope import EVERYTHING, ViewScope, scope_of
from metasrv.service.views.view import Row, View, near_column
from metasrv_base.errors import Refused
from metasrv_base.expressions.nodes import columns_of
from metasrv_base.expressions.parse import parse
from metasrv_base.expressions.tokens import Sort, tokens
from metasrv_base.expressions.typed import Typed, computed, typed
from metasrv_base.schema.arrays import arrow_array
from metasrv_base.sql.faults import excerpt, position

WHERE = "where"
_PLACE = re.compile(r"at character ([0-9]+)$")


@dataclass(frozen=True, slots=True)
class ViewFilter:
    """Rows of which the condition is true; of unknown (null) it is not."""

    view: View
    scope: ViewScope = EVERYTHING
    condition: Typed | None = None
    """The condition; None for all rows."""
    columns: tuple[int, ...] = ()
    """Places of those that the condition reads."""

    @classmethod
    def of(cls, view: View, text: str | None) -> "ViewFilter":
        """Raises Refused `invalid-request`, with the place in the text and the name that was
        perhaps meant."""
        if text is None:
            return cls(view)
        try:
            _must_name_columns(view, text)
            node = parse(text, view.places, WHERE)
            condition = typed(node, dict(enumerate(view.types)), WHERE)
        except Refused as error:
            raise _placed(error, text) from error
        names = tuple(column.name for column in view.columns)
        return cls(view, scope_of(node, names), condition, columns_of(node))

    def kept(self, rows: Sequence[Row]) -> list[bool]:
        """Whether each row is taken. Raises Refused for what cannot be computed, as 1/0."""
        if self.condition is None or not rows:
            return [True] * len(rows)
        types = self.view.types
        columns = {
            index: arrow_array(types[index], [row[index] for row in rows]) for index in self.columns
        }
        try:
            mask = computed(self.condition, columns)
        except pa.ArrowInvalid as error:
            reason = str(error).partition("\n")[0]
            raise Refused(
                "invalid-request", pointer=WHERE, expected="what has a value", found=reason
            ) from error
        if isinstance(mask, pa.Scalar):
            return [mask.as_py() is True] * len(rows)
        kept: list[bool] = pc.fill_null(mask, False).to_pylist()
        return kept


def _must_name_columns(view: View, text: str) -> None:
    for token in tokens(text, WHERE):
        if token.sort is Sort.NAME and token.text not in view.places:
            raise Refused(
                "invalid-request",
                pointer=WHERE,
                found=f"{token.text!r} at character {token.offset}",
                expected=f"a column of {view.name}",
                **near_column(view, token.text),
            )


def _placed(error: Refused, text: str) -> Refused:
    """The same, with the line of the text and a mark under the place, if the error names one."""
    actual = str(error.facts.get("found", ""))
    match = _PLACE.search(actual)
    offset = len(text) if actual == "the end" else int(match[1]) if match else None
    if offset is None:
        return error
    line, column = position(text, offset)
    marked = {"line": line, "column": column, "offset": offset, "excerpt": excerpt(text, offset)}
    return Refused(error.code, **error.facts, **marked)
