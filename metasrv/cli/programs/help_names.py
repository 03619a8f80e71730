"""Help texts without types of Python: `TABLE` instead of `TABLE <str>` and `{TABLE}`, `--yes`
instead of `--yes <bool>`; and without variables that are named after their flag."""

from functools import partial
from typing import Any

from typer.core import TyperArgument, TyperGroup


class PlainGroup(TyperGroup):
    """The commands, whose help has a name for each value, and no types."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            leave_out_types(command, ctx)
        return command

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)
        _leave_out(params)
        return params


def leave_out_types(command: Any, parent: Any) -> None:
    """Leaves types out of *command* and all below it: an argument is its own name, and a flag takes
    no value. *parent*: the context above it, which says how help is asked for."""
    context = command.context_class(command, parent=parent)
    _leave_out(command.get_params(context))
    for child in getattr(command, "commands", {}).values():
        leave_out_types(child, context)


def _leave_out(params: list[Any]) -> None:
    for param in params:
        if getattr(param, "is_flag", False) or isinstance(param, TyperArgument):
            param.display_type_rich = _no_type
        if isinstance(param, TyperArgument):
            vars(param)["_usage_display_name"] = partial(_usage_name, param)
        elif param.envvar is None:  # a variable by the prefix of its command, which its help says
            param.show_envvar = False


def _usage_name(param: TyperArgument) -> str:
    """`TABLE`, `[SCHEMA]`, `KEY...`; a name in brackets has them already."""
    name = param.display_name_raw
    if param.nargs != 1 and not name.endswith("..."):
        name += "..."
    return name if param.required or name.startswith("[") else f"[{name}]"


def _no_type(ctx: Any) -> None:  # as the method that it stands for
    return None
