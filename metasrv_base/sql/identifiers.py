"""Names of objects as SQL has them: when they need quotes. It imports no parser, so that the prompt
begins soon."""

import re

from metasrv_base.expressions.tokens import WORDS
from metasrv_base.sql.quoting import quoted_name

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_QUOTED = WORDS | {"primary", "constraint", "check", "unique", "foreign", "exclude", "like"}
"""Words that a column cannot be called without quotes."""


def identifier(name: str) -> str:
    """A name as it is printed: with quotes where it needs them."""
    is_plain = _BARE.fullmatch(name) is not None and name.lower() not in _QUOTED
    return name if is_plain else quoted_name(name)


def dotted(*parts: str | None) -> str:
    """The parts that there are."""
    return ".".join(identifier(part) for part in parts if part is not None)
