"""stub"""

from pathlib import Path
from tessera_conformance.suite_run import Case


def write_script(directory: Path, implementation: str, case: Case) -> Path:
    """stub"""
    return directory
