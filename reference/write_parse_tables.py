"""Write the LALR tables of the language's grammar into the package again, after a change of grammar or Lark."""

from __future__ import annotations

from pathlib import Path

from tessera_reference.language import parser

if __name__ == "__main__":
    file = Path(parser.__file__).with_name(parser.FILE)
    file.write_bytes(parser.written(parser.new_parser(parser.TreeBuilder())))
    print(f"{file.name}: {file.stat().st_size} bytes")
