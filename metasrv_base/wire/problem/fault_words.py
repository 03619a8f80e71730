"""Words for the faults that pydantic finds in a value, as users read them. Pure."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

_PLAIN: Mapping[str, str] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "it must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "it must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "it must be true or false"),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "it must be an object"),
    **dict.fromkeys(
        ("list_type", "tuple_type", "set_type", "frozen_set_type"), "it must be a list"
    ),
    "string_type": "it must be a text",
    "none_required": "it must be null",
}
"""Types of pydantic's faults, of which the messages name its own parts or those of Python."""
_BEGINNING = re.compile(r"^(?:Input|String|List|Tuple|Set|Dictionary|Data) should ")


def fault_of(error: Mapping[str, Any]) -> str:
    """pydantic's message, in plain words where it speaks of its own parts."""
    match error["type"]:
        case "missing":
            return "a value is needed"
        case "extra_forbidden":
            return "there is no such field"
        case "union_tag_invalid":
            tag, tags = error["ctx"]["tag"], str(error["ctx"]["expected_tags"])
            names = tags.replace("'", "").split(", ")
            close = get_close_matches(str(tag), names, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            field = str(error["ctx"]["discriminator"]).replace("'", "")
            return f"there is no {field} {tag}; {hint}All: {', '.join(names)}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return _PLAIN.get(error["type"]) or _BEGINNING.sub("it must ", message)
