"""Write the LALR tables of the language's grammar into the package again, after a change of grammar or Lark."""

from __future__ import annotations

from pathlib import Path

from tessera_reference.language import parse_tables, tree

if __name__ == "__main__":
    file = Path(parse_tables.__file__).with_name(parse_tables.FILE)
    file.write_bytes(parse_tables.written(parse_tables.new_parser(tree.TreeBuilder())))
    print(f"{file.name}: {file.stat().st_size} bytes")
