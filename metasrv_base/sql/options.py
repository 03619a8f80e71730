"""Options of an object: `(comment = 'x', "app.owner" = 'ada')`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from metasrv_base.sql.identifiers import identifier
from metasrv_base.sql.quoting import quoted
from metasrv_base.sql.reader import Reader
from metasrv_base.sql.tokens import SqlSort


def options(
    reader: Reader,
    pointer: str = "/options",
    fields: Mapping[str, Callable[[], None]] = MappingProxyType({}),
) -> dict[str, str]:
    """Reads `( name = 'value', .. )`. The parts of a name that dots join need no quotes. The value
    of a name in *fields* that is no text is read by that function, and is no option."""
    pairs: dict[str, str] = {}

    def pair(_: int) -> None:
        token = reader.token
        name = option_name(reader)
        if name in pairs:
            raise reader.unexpected("each option once", token=token)
        reader.must_take("=")
        if name in fields and reader.token.sort is not SqlSort.TEXT:
            fields[name]()
        else:
            pairs[name] = reader.text("a value", f"{pointer}/{name}")

    with reader.placed(pointer):
        reader.listed(pair)
    return pairs


def option_name(reader: Reader) -> str:
    name = reader.name("an option")
    while reader.takes("."):
        name += "." + reader.name("an option")
    return name


def options_text(options: Mapping[str, str]) -> str:
    """The inverse of `options`."""
    pairs = (f"{option_text(name)} = {quoted(value)}" for name, value in options.items())
    return f"({', '.join(pairs)})"


def option_text(name: str) -> str:
    """The inverse of `option_name`."""
    return ".".join(map(identifier, name.split(".")))
