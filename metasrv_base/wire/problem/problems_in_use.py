"""Problem codes of objects that others are in, or use: 409."""

from metasrv_base.errors import Conflict
from metasrv_base.wire.problem.problem_kind import ProblemKind

USES = (
    ProblemKind(
        "not-empty",
        409,
        Conflict,
        "The object is not empty",
        (
            "{name} is not empty: objects in it: {count}.",
            "{name} is not empty.",
            "The object is not empty.",
        ),
        "Drop what it holds first.",
    ),
    ProblemKind(
        "object-in-use",
        409,
        Conflict,
        "The object is in use",
        ("{name} {what}.", "{name} is in use.", "The object is in use."),
        "Drop the tables that `used_by` names, the first ten of them. A table keeps its placement, "
        "storage profile and tablespace; what is called `default` always stays.",
    ),
    ProblemKind(
        "node-in-use",
        409,
        Conflict,
        "The node is still in use",
        ("{node_id} {what}.", "{node_id} is still in use.", "The node is in use."),
        "Drain it; purge its dropped tables or let them expire; pass `lost` if its disk is gone.",
    ),
    ProblemKind(
        "too-many-objects",
        409,
        Conflict,
        "There are too many of these objects",
        (
            "There are {count} {what}; at most {limit} are allowed.",
            "There are too many of these objects.",
        ),
        "Drop some that are not needed; docs/limits.md has the limits.",
    ),
    ProblemKind(
        "being-dropped",
        409,
        Conflict,
        "The object is being dropped",
        ("{name} is being dropped.", "The object is being dropped."),
        "Wait for the procedure named in `procedure_id`, or choose another name.",
    ),
)
