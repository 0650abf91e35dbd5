"""Tile IR, `tessera.tile`: one module per family of operations, and the interpreter of kernels (spec sections 7, 8.3).

Importing the package imports every module in it and declares every operation. It does not import the package
`lowering`, which needs it and Schedule IR.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, f"{__name__}."):
    if not _module.ispkg:
        import_module(_module.name)
