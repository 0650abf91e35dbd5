"""The chapters of the suite as packages: `chapters.ir.kit` is the folder `ir/kit` of a checkout or a wheel."""

from tessera_conformance.cases import suite_directory

__path__ = [str(suite_directory())]
