"""The functions of the host API, a file for each part of section 4 of the runtime specification, and extensions.

Every file in the folder is imported, and thereby registers its functions.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
