"""Commands of a batch, drawn: most are about a name that another has made, taken or freed."""

from random import Random
from typing import Any

from tests.metasrv.api.rig import spec

SCHEMAS = ("public", "a")
TABLES = ("t", "u")

Command = dict[str, dict[str, Any]]


def drawn(rng: Random) -> Command:
    schema, table = rng.choice(SCHEMAS), rng.choice(TABLES)
    where = {"catalog": "main", "schema": schema}
    miss = {"if_exists": rng.random() < 0.8}
    stands = {"if_not_exists": rng.random() < 0.8}
    if rng.random() < 0.4:
        return of_placing(rng)
    match rng.choice(("schema", "create", "create", "drop", "rename", "options", "sweep")):
        case "schema":
            return {"create_schema": {"catalog": "main", "schema": {"name": schema, **stands}}}
        case "create":
            return {"create_table": {**where, "table": spec(table, **stands)}}
        case "drop":
            return {"drop_table": {**where, "table": table, **miss}}
        case "rename":
            to = {"new_schema": rng.choice(SCHEMAS), "new_name": rng.choice(TABLES)}
            return {"rename_table": {**where, "table": table, **to, **miss}}
        case "options":
            options = {"comment": str(rng.randrange(9))}
            operations = [{"op": "set_options", "options": options}]
            return {"alter_table": {**where, "table": table, "operations": operations, **miss}}
    return {"drop_schema": {**where, "cascade": rng.random() < 0.7, **miss}}


def of_placing(rng: Random) -> Command:
    what, name = rng.choice(("placement", "tablespace")), rng.choice(("p", "q"))
    where = {} if what == "placement" else {"catalog": "main"}
    miss = {"if_exists": rng.random() < 0.8}
    match rng.choice(("create", "create", "alter", "rename", "drop")):
        case "create":
            spec = {"name": name, "if_not_exists": rng.random() < 0.8}
            made = spec if what == "placement" else {"catalog": "main", "tablespace": spec}
            return {f"create_{what}": made}
        case "alter":
            text = rng.choice((None, "c", "d"))
            return {f"alter_{what}": {**where, what: name, "comment": text, **miss}}
        case "rename":
            return {f"rename_{what}": {**where, what: name, "new_name": rng.choice("pq"), **miss}}
    return {f"drop_{what}": {**where, what: name, **miss}}
