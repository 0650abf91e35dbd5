"""`tessera-conformance new-adapter` and `smoke`: from nothing to an adapter that the harness understands."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tessera_conformance.observations import Fault, Observation, describe
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import COMPILERS, FORMS, locate

TEMPLATE = Path(__file__).with_name("adapter_template.py")

PROGRAM = "module m { func f(A: tensor<2xfp32>) -> tensor<2xfp32> { return A + A; } }"
REQUESTS = (
    ("language.parse", {"source": PROGRAM}),
    ("language.verify", {"source": PROGRAM}),
    ("language.lower", {"source": PROGRAM, "to": "graph"}),
    (
        "language.execute",
        {
            "source": PROGRAM,
            "function": "f",
            "inputs": {"A": Tensor.from_words("fp32", (2,), [0x3F800000, 0x40000000])},
        },
    ),
)


def configure_new_adapter(parser: argparse.ArgumentParser) -> None:
    """The command `new-adapter`."""
    parser.add_argument("path", nargs="?", type=Path, default=Path("my_adapter.py"), help="default: my_adapter.py")
    parser.set_defaults(handler=new_adapter)


def configure_smoke(parser: argparse.ArgumentParser) -> None:
    """The command `smoke`."""
    parser.add_argument("implementation", metavar="IMPL", help=FORMS)
    parser.add_argument("--compiler", default=None, metavar="COMPILER", help=COMPILERS)
    parser.add_argument("--deadline", type=float, default=10.0, metavar="SECONDS", help="for each call")
    parser.set_defaults(handler=smoke)


def new_adapter(arguments: argparse.Namespace) -> int:
    """Write the skeleton; never over a file that exists."""
    try:
        with arguments.path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.read_text(encoding="utf-8"))
    except OSError as error:
        print(f"{arguments.path}: {error.strerror}: name a new file in a folder that can be written", file=sys.stderr)
        return 2
    print(f"{arguments.path} is written; now try: tessera-conformance smoke py:{arguments.path.stem}:make")
    return 0


def smoke(arguments: argparse.Namespace) -> int:
    """0 where every answer follows the protocol, whatever it says; 1 where one does not; 2 where nothing answers."""
    try:
        session = Session(locate(arguments.implementation, arguments.compiler), arguments.deadline, arguments.deadline)
    except ImplementationUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    try:
        return _smoke(session)
    except ImplementationUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        session.close()


def _smoke(session: Session) -> int:
    hello = session.open()
    if isinstance(hello, Fault):
        _print_observation("session.open", hello)
        return 1
    print(f"{'session.open':18} {hello.name} {hello.version}, claims {', '.join(hello.documents) or 'no document'}")
    sound = True
    for method, params in REQUESTS:
        observation = session.call(method, params)
        _print_observation(method, observation)
        sound = sound and not isinstance(observation, Fault)
    fault = session.reset()
    if fault is not None:
        _print_observation("session.reset", fault)
    return 0 if sound and fault is None else 1


def _print_observation(method: str, observation: Observation) -> None:
    print(f"{method:18} {describe(observation)}")
    if isinstance(observation, Fault) and observation.stderr.strip():
        print("\n".join(f"{'':18} | {line}" for line in observation.stderr.strip().splitlines()[-12:]))
