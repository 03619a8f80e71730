"""Operations of alters as clients send them."""

ADD = {"op": "add_column", "column": {"name": "extra", "type": "int64"}, "after": "id"}
