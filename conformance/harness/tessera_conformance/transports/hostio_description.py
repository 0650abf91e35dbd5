"""The description of an endpoint behind a socket by its vendor: a TOML or JSON file (`docs/host_io.md`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tessera_conformance.documents import read_json, read_toml
from tessera_conformance.schemas import first_problem


class BadDescription(Exception):
    """A description that cannot be read, or says what no endpoint has; says where."""


@dataclass(frozen=True)
class Description:
    """A description: the name, the features that its vendor claims, and the answer to `host_io.describe`."""

    name: str
    version: str
    features: tuple[str, ...]
    endpoint: Mapping[str, Any]

    def hello(self) -> dict[str, Any]:
        """The Hello: the document `host_io` and nothing else."""
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": self.name, "version": self.version},
            "documents": ["host_io"],
            "capabilities": dict.fromkeys(self.features, "enforced"),
        }


LEAST = Description(
    "endpoint",
    "unknown",
    (),
    {
        "devices": [{"name": "sip:0", "sip": 0}],
        "places": [{"sip": 0, "cube": 0, "pe": pe} for pe in range(2)],
        "memories": [{"kind": "HBM", "base": 0, "bytes": 1 << 20}],
        "builtins": [],
    },
)
"""The presumed endpoint: two PEs with HBM of 1 MiB at 0 on one device, and no kernel."""


def read_description(path: str) -> Description:
    """The description in a file; what it leaves out is as in `LEAST`. Raises `BadDescription`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        told = read_json(text) if path.endswith(".json") else read_toml(text)
    except OSError as error:
        raise BadDescription(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise BadDescription(f"{path}: {error}") from None
    if not isinstance(told, dict):
        raise BadDescription(f"{path}: expected an object")
    texts = {name: told.pop(name, usual) for name, usual in (("name", LEAST.name), ("version", LEAST.version))}
    features = told.pop("features", [])
    if not (isinstance(features, list) and all(isinstance(feature, str) for feature in features)):
        raise BadDescription(f"{path}: features: expected a list of texts")
    description = Description(**texts, features=tuple(features), endpoint={**LEAST.endpoint, **told})
    for schema, name, value in (
        ("tessera:protocol/session", "open.result", description.hello()),
        ("tessera:protocol/host_io", "describe.result", dict(description.endpoint)),
    ):
        problem = first_problem(schema, name, value)
        if problem is not None:
            raise BadDescription(f"{path}: {problem}")
    return description
