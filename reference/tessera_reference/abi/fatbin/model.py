"""A fatbin as a value (runtime spec 8.1, 16): what the container holds, apart from how its bytes lie."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..version import AbiVersion
from .checks import is_whole_number, require, require_all
from .entries import Metadata

__all__ = ["BINARY_KINDS", "CODE_KINDS", "KINDS", "Fatbin", "Section"]

KINDS = {"graph-ir": 1, "target-ir": 2, "ptx": 3, "amdgcn": 4, "metadata": 5, "signature": 6, "rocdl": 7}
"""The kinds of section and their numbers in the section table."""

CODE_KINDS = ("graph-ir", "target-ir", "ptx", "amdgcn", "rocdl")
"""What kernels can be made from: a module has at least one (AMB-RT-44, AMB-RT-60)."""

BINARY_KINDS = ("ptx", "rocdl")
"""What a vendor's tools take: PTX, or bitcode of LLVM for ROCDL (RT-08.1-05, -06)."""

_FOR_A_TARGET = ("target-ir", "ptx", "amdgcn", "rocdl")
_TEXTS = ("graph-ir", "target-ir")
_TARGET = re.compile(r"[a-z0-9][a-z0-9_.-]{0,30}")


@dataclass(frozen=True)
class Section:
    """A section: its kind, the target that it is for, or None where it is for all, and its bytes."""

    kind: str
    target: str | None
    data: bytes

    def __post_init__(self) -> None:
        require(isinstance(self.kind, str) and self.kind in KINDS, "a section's kind", self.kind, ", ".join(KINDS))
        require(isinstance(self.data, bytes), f"section {self.kind}", type(self.data), "bytes")
        where = f"the target of section {self.kind}"
        if self.kind in _FOR_A_TARGET:
            require(isinstance(self.target, str), where, self.target, "a target")
        else:
            require(self.target is None, where, self.target, "none")
        if self.kind in _TEXTS:
            try:
                self.data.decode()
            except UnicodeDecodeError:
                require(False, f"section {self.kind}", self.data, "text in UTF-8")


@dataclass(frozen=True)
class Fatbin:
    """A module: header, sections and metadata.

    `sections` are all but the metadata; a signature, if there is one, comes last. `ir_hash` is the SHA-256 of the
    source IR. Raises `Failure` with TESS_ERR_INVALID_VALUE for what no module is.
    """

    abi_version: AbiVersion
    ir_hash: bytes
    targets: tuple[str, ...]
    sections: tuple[Section, ...]
    metadata: Metadata

    def __post_init__(self) -> None:
        version = self.abi_version
        pair = isinstance(version, tuple) and len(version) == 2 and all(is_whole_number(n, 0, 0xFFFF) for n in version)
        require(pair, "the ABI version", version, "major and minor, two numbers from 0 to 65535")
        hashed = isinstance(self.ir_hash, bytes) and len(self.ir_hash) == 32
        require(hashed, "the hash of the source IR", self.ir_hash, "32 bytes")
        self._check_targets()
        self._check_sections()
        require(isinstance(self.metadata, Metadata), "the metadata", self.metadata, "of type Metadata")

    def section(self, kind: str, target: str | None = None) -> Section | None:
        """The section of a kind for a target, or None."""
        return next((each for each in self.sections if (each.kind, each.target) == (kind, target)), None)

    def _check_targets(self) -> None:
        require(isinstance(self.targets, tuple), "targets", self.targets, "a tuple of names")
        for target in self.targets:
            named = isinstance(target, str) and _TARGET.fullmatch(target) is not None
            require(named, "a target", target, "1 to 31 of the characters a-z 0-9 _ . -, such as sm_90")
        require(len(set(self.targets)) == len(self.targets), "targets", self.targets, "each once")

    def _check_sections(self) -> None:
        require_all("the sections", self.sections, Section)
        names = [(each.kind, each.target) for each in self.sections]
        targets = set(self.targets)
        for kind, target in names:
            require(kind != "metadata", "a section's kind", kind, "another: the metadata stands apart")
            known = target is None or target in targets
            require(known, f"the target of section {kind}", target, "one of the module's targets")
        require(len(set(names)) == len(names), "sections", names, "each kind once for each target")
        require(
            any(kind in CODE_KINDS for kind, _ in names), "sections", names, "one at least of " + ", ".join(CODE_KINDS)
        )
        unsigned = names[:-1]
        require(("signature", None) not in unsigned, "sections", names, "the signature, if any, as the last one")
