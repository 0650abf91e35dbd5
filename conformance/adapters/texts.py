"""The texts that tools of others are asked to read: what a compiler of the language prints, and forgeries of it.

Texts are those of `lower`, the command of the compiler, for programs of the equality corpus. A forgery is a text with
one mistake that every reader of its language must refuse, whatever it knows of the operations in it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS

LOWER = (sys.executable, "-m", "tessera_reference", "lower")
TARGETS = {"tile": ("sm_90", "gfx942"), "target": ("sm_90", "gfx942"), "llvm": ("sm_90", "gfx942"), "ptx": ("sm_90",)}
"""For which targets a level is asked for; of the levels above, for one."""


@dataclass(frozen=True)
class Text:
    """The text of one program at a level, for a target."""

    program: str
    level: str
    target: str
    text: str


def texts(levels: Sequence[str], every: int = 1, lower: Sequence[str] = LOWER) -> Iterator[Text]:
    """The texts of every so-manieth program at these levels; a program that does not reach a level has none there."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "program.tsr"
        for program in PROGRAMS[::every]:
            source.write_text(program.source, encoding="utf-8")
            for level in levels:
                for target in TARGETS.get(level, ("sm_90",)):
                    command = [*lower, "--export", "--to", level, "--target", target, str(source)]
                    if level in ("llvm", "ptx"):
                        command.remove("--export")
                    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
                    if done.returncode == 0 and done.stdout:
                        yield Text(program.name, level, target, done.stdout)


Forgery = Callable[[str], str]


def _replaced(pattern: str, by: str) -> Forgery:
    return lambda text: re.sub(pattern, by, text, count=1, flags=re.MULTILINE)


def _doubled(pattern: str) -> Forgery:
    return lambda text: re.sub(f"^({pattern}.*)$", r"\1\n\1", text, count=1, flags=re.MULTILINE)


MLIR: Mapping[str, Forgery] = {
    "a value that nothing defines": _replaced(r'(= "[\w.]+"\()%[\w$.-]+', r"\1%nothing"),
    "a second definition": _doubled(r" *%[\w$.-]+ = "),
    "an operand without a type": _replaced(r"(\}|\)) : \([^(),<>]*(?:<[^<>]*>)?[^(),<>]*(, )?", r"\1 : ("),
    "a string without an end": _replaced(r'"(tessera\.\w+\.\w+)"', r'"\1'),
    "a region without an end": lambda text: text[: text.rindex("})")],
}
LLVM: Mapping[str, Forgery] = {
    "a value that nothing defines": _replaced(r"(= (?:add|mul|sub|fadd|fmul|load|sdiv|icmp) .*)%[\w.]+", r"\1%nothing"),
    "a second definition": _doubled(r" *%[\w.]+ = "),
    "an unknown instruction": _replaced(r"(^ *%[\w.]+ = )\w+", r"\1multiplyadd"),
    "a result where there is none": _replaced(r"^( *)ret void", r"\1ret i32 0"),
    "a function without an end": lambda text: text[: text.rindex("\n}")],
}
PTX: Mapping[str, Forgery] = {
    "a register that nothing declares": _replaced(r"^\s*\.reg .*$", ""),
    "an unknown instruction": _replaced(r"^(\s*)mov\.", r"\1multiplyadd."),
    "a label that is nowhere": _replaced(r"^(\s*)ret;", r"\1bra $nowhere;"),
    "an operand of another width": _replaced(r"(ld\.param\.[bu])64", r"\g<1>16x"),
    "a function without an end": lambda text: text[: text.rindex("}")],
}
"""The forgeries of a language by what is wrong in them."""


def forged(text: str, forgeries: Mapping[str, Forgery]) -> Iterator[tuple[str, str]]:
    """The forgeries of a text that differ from it, each with what is wrong in it."""
    for mistake, forge in forgeries.items():
        other = forge(text)
        if other != text:
            yield mistake, other
