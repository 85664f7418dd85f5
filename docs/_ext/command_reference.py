"""Write the page of the commands from what `omfb --help` knows, whenever the site is built."""

import inspect
from pathlib import Path
from typing import Any

import typer

from omfb.cli import app as command_line

PAGE = Path("reference") / "generated" / "commands.md"


def page() -> str:
    """The commands and their options as Markdown."""
    group: Any = typer.main.get_command(command_line)
    lines = ["# Commands", "", "What `omfb COMMAND --help` prints.", ""]
    for name, command in group.commands.items():
        lines += _section(name, command)
    return "\n".join(lines) + "\n"


def _section(name: str, command: Any) -> list[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = " ".join(["omfb", name, "[OPTIONS]", *(_metavar(each) for each in arguments)])
    lines = [f"## omfb {name}", "", "```text", usage, "```", "", inspect.cleandoc(command.help), ""]
    for each in arguments:
        lines += [f"`{_metavar(each)}`", f": {each.help}", ""]
    for panel in dict.fromkeys(each.rich_help_panel or "Options" for each in options):
        lines += [f"**{panel}**", ""]
        for each in options:
            if (each.rich_help_panel or "Options") == panel:
                names, text = each.get_help_record(context)
                lines += [f"`{names}`", f": {' '.join(text.split())}", ""]
    return lines


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _write(app: Any) -> None:
    path = Path(app.srcdir) / PAGE
    path.parent.mkdir(parents=True, exist_ok=True)
    text = page()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Let Sphinx write the page before it looks for pages."""
    app.connect("builder-inited", _write, priority=100)
    return {"parallel_read_safe": True}
