"""Writes the page of the command line, command_line.md, from the parsers: `python docs/draw_command_line.py`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from tessera_conformance import cli as conformance
from tessera_conformance.options import add_options
from tessera_reference.commands import register_all

PAGE = Path(__file__).parent / "command_line.md"

INTRODUCTION = """# Command line

Every command of `tessera-conformance` and `tessera-reference`, with all of its options. An argument in square brackets
may be left out. `COMMAND --help` prints the same texts. `python docs/draw_command_line.py` writes this page from the
parsers of the commands.

| exit code | `tessera-conformance` | `tessera-reference` |
|---|---|---|
| 0 | success | done |
| 1 | a judgement failed | `fmt --check`: not in canonical form; `compare-levels`: levels differ |
| 2 | the request cannot be met | bad input, or a tool that is not installed |
| 3 | | a legal program that this reference does not support |
"""

SUITE = """## Options of the suite

`tessera-conformance run`, `tessera-conformance reproduce` and `pytest conformance` take these options. `run` and
`pytest` also take the options of pytest, such as `-k`, `-x` and `-n`. [Verdicts](verdicts.md),
[numerics](numerics.md) and [reports](reports.md) explain what they mean.
"""


def page() -> str:
    """The whole page."""
    suite = argparse.ArgumentParser(add_help=False)
    add_options(suite.add_argument)
    reference = argparse.ArgumentParser(prog="tessera-reference")
    register_all(reference.add_subparsers(metavar="COMMAND"), ())
    tested, _ = conformance._parser(conformance.COMMANDS)
    lines = [
        INTRODUCTION,
        SUITE,
        *table(suite),
        "## tessera-conformance\n",
        *commands(tested),
        "## tessera-reference\n",
        *commands(reference),
    ]
    return "\n".join(lines).rstrip() + "\n"


def commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The sections of the commands of a parser, those of a command with actions one by one."""
    for name, command, summary in subcommands(parser):
        nested = list(subcommands(command))
        yield f"### {parser.prog} {name}\n"
        yield f"{sentence(summary)}\n"
        yield from table(command)
        if command.get_default("takes_rest"):
            yield "It takes the [options of the suite](#options-of-the-suite) too.\n"
        if nested:
            yield from actions(command)


def actions(command: argparse.ArgumentParser) -> Iterator[str]:
    """The sections of the actions of a command, such as `clauses show`."""
    for name, action, summary in subcommands(command):
        yield f"#### {command.prog} {name}\n"
        yield f"{sentence(summary)}\n"
        yield from table(action)


def subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """The name, the parser and the summary of each command of a parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                yield name, command, summaries.get(name, command.description or "")


def table(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The arguments of a command and what each means; nothing for a command without any."""
    rows = [
        f"| {spelling(action)} | {meaning(action)} |"
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        and not isinstance(action, (argparse._HelpAction, argparse._SubParsersAction))
    ]
    if rows:
        yield "\n".join(["| argument | meaning |", "|---|---|", *rows, ""])


def spelling(action: argparse.Action) -> str:
    """An argument as a user writes it: `-o FILE, --output FILE`, with brackets if it may be left out."""
    metavar = action.metavar if isinstance(action.metavar, str) else None
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices is not None else None
    value = metavar or choices or action.dest.upper()
    if not action.option_strings:
        optional = action.nargs in ("?", "*")
        return code(f"[{value}]" if optional else f"{value} ..." if action.nargs == "+" else value)
    takes = "" if action.nargs == 0 else f" {value}"
    text = ", ".join(f"{option}{takes}" for option in action.option_strings)
    return code(text if action.required else f"[{text}]")


def meaning(action: argparse.Action) -> str:
    """The help of an argument, with its default if it is a plain value that the help leaves out."""
    text = re.sub(r"\s+", " ", (action.help or "") % {"default": action.default, "prog": "COMMAND"})
    plain = isinstance(action.default, (str, int, float)) and not isinstance(action.default, bool)
    named = "default" in text or "unless given" in text or f"({action.default})" in text
    if plain and action.default not in ("", argparse.SUPPRESS) and not named and action.nargs != 0:
        text = f"{text} (default: {action.default})"
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_").replace("[", "\\[")


def sentence(summary: str) -> str:
    """A summary as a sentence."""
    text = re.sub(r"\s+", " ", summary.partition("\n\n")[0]).strip().rstrip(".").replace("<", "&lt;")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def code(text: str) -> str:
    """A text in a code span of a table."""
    return "`" + text.replace("|", "\\|") + "`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
