"""Write the LALR tables of the language's grammar into the package again, after a change of grammar or Lark."""

from __future__ import annotations

from pathlib import Path

from tessera_reference.language import grammar

if __name__ == "__main__":
    file = Path(grammar.__file__).with_name(grammar.FILE)
    file.write_bytes(grammar.written(grammar.new_parser(grammar.TreeBuilder())))
    print(f"{file.name}: {file.stat().st_size} bytes")
