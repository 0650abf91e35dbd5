"""The LALR tables of `grammar.lark`, kept in the package by `Lark.save`: to compute them takes 0.15 s of each process.

Before the tables the file names the version of Lark and the digest of the grammar that it was made from; where either
differs, the tables are computed as ever. `python reference/write_parse_tables.py` writes it again. What Lark saves is
a pickle, and as trustworthy as the code beside it: it is read from this package alone.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from importlib.resources import files
from typing import Any

import lark
from lark import Lark

__all__ = ["FILE", "kept_parser", "made_from", "new_parser", "written"]

FILE = "grammar.tables.gz"


def made_from() -> bytes:
    """The first line of a file that can be used: version of Lark, digest of the grammar."""
    digest = hashlib.sha256(_grammar().encode()).hexdigest()
    return f"lark {lark.__version__} grammar sha256:{digest}\n".encode()


def kept_parser() -> Lark | None:
    """The parser of the file, with its transformer; None where the file is of another grammar or Lark, or missing."""
    file = files(__package__).joinpath(FILE)
    if not file.is_file():
        return None
    content = io.BytesIO(gzip.decompress(file.read_bytes()))
    return Lark.load(content) if content.readline() == made_from() else None


def new_parser(transformer: Any) -> Lark:
    """The parser with tables computed from the grammar; the transformer makes nodes of its rules."""
    return Lark(
        _grammar(), start="program", parser="lalr", lexer="basic", keep_all_tokens=True, transformer=transformer
    )


def written(parser: Lark) -> bytes:
    """The content of the file for a parser of the grammar as it is."""
    tables = io.BytesIO()
    parser.save(tables)
    return gzip.compress(made_from() + tables.getvalue(), mtime=0)


def _grammar() -> str:
    return files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
