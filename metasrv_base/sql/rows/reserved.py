"""Words that no column is called in statements about rows, unless in double quotes."""

from metasrv_base.sql.identifiers import identifier

MORE_WORDS = frozenset(
    (
        *("AS", "CASE", "CAST", "CROSS", "DISTINCT", "EXCEPT", "EXISTS", "FETCH", "FULL", "GROUP"),
        *("HAVING", "ILIKE", "IN", "INNER", "INTERSECT", "IS", "JOIN", "LEFT", "LIKE", "NATURAL"),
        *("NOT", "OFFSET", "ON", "OR", "OVER", "RETURNING", "RIGHT", "SELECT", "UNION", "USING"),
        *("WINDOW", "WITH"),
    )
)
"""Words of queries that are more than a read by key or index."""
RESERVED = MORE_WORDS | {
    *("AND", "BETWEEN", "DEFAULT", "FALSE", "FROM", "INTO", "LIMIT", "NULL", "ORDER", "SET"),
    *("TRUE", "VALUES", "WHERE"),
}


def column_text(name: str) -> str:
    """The name of a column as these statements have it."""
    return f'"{name}"' if name.upper() in RESERVED else identifier(name)
