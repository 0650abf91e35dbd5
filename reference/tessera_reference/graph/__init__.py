"""Graph IR, `tessera.graph`: one module per family of operations, and their execution (spec section 5).

Importing the package imports every module in it, and with that declares every operation.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
