"""The clause registry: the demands of the five specifications, how each is verified, and which are still untested.

`load_registry(clauses_directory())` gives the typed registry; `coverage` joins it with the tests' tags. The commands
`tessera-conformance clauses` are in `commands.clauses`.
"""

from tessera_conformance.registry.cases import Tally, coverage
from tessera_conformance.registry.errors import RegistryError
from tessera_conformance.registry.load import load_registry
from tessera_conformance.registry.model import Clause, Construct, Document, Interpretation, Registry

__all__ = [
    "Clause",
    "Construct",
    "Document",
    "Interpretation",
    "Registry",
    "RegistryError",
    "Tally",
    "coverage",
    "load_registry",
]
