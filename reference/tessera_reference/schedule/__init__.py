"""Schedule IR, `tessera.schedule`: the tiling, fusion, pipelining and staging of Graph IR (spec section 6).

Importing the package imports every module in it, and so declares every operation. Schedule operations preserve values:
a scheduled function run as Graph IR computes the same bits (LANG-08.2-01, AMB-LANG-110).
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
