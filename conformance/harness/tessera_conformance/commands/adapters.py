"""The commands that connect an implementation: `new-adapter`, `smoke` and `serve`."""

from __future__ import annotations

import argparse
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tessera_conformance.cases import c_header, clauses_directory
from tessera_conformance.check import Check, Unanswered
from tessera_conformance.protocol import Fault, Hello, Rejected, Unsupported, describe
from tessera_conformance.registry import RegistryError, load_registry
from tessera_conformance.server import serve
from tessera_conformance.session import Implementation, Session
from tessera_conformance.suite_run import strange_claims
from tessera_conformance.tensors import Tensor
from tessera_conformance.terminal import error_text, print_error, quoted_tail, reporting_errors, visible
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import COMPILERS, FORMS, TABLES, PassingAdapter, load_adapter, locate, via_of
from tessera_conformance.verdicts import WAYS, after_running

# `tessera-conformance new-adapter`: the skeleton of an implementation that the harness can call.
#
# The skeletons are plain files in `adapter_templates`; `templates.toml` there lists the files of each.


TEMPLATES = Path(__file__).with_name("adapter_templates")
HEADER = "tessera.h"
KINDS = ("runtime", "language", "operations", "collectives")
LANGUAGES = ("python", "c", "cpp", "rust", "go", "node")


@dataclass(frozen=True)
class Skeleton:
    """A skeleton: its files, its build command, and the commands to try first."""

    files: Mapping[Path, Path]
    build: str
    impl: str
    first: Sequence[str]
    needs: Sequence[str]

    @property
    def commands(self) -> Sequence[Sequence[str]]:
        """Return the commands to run once it is built."""
        via = [option for option in self.first if option.startswith("--via")]
        arguments = {"smoke": via, "run": self.first}
        return [["tessera-conformance", name, f"--impl={self.impl}", *rest] for name, rest in arguments.items()]

    def write(self) -> None:
        """Write the files. Raises `OSError`: one exists already, so that none is written, or writing fails."""
        for path in self.files:
            if path.exists():
                raise FileExistsError(17, "File exists", str(path))
        for path, template in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(template.read_text(encoding="utf-8"), encoding="utf-8")


def skeleton(language: str, kind: str, path: Path | None = None) -> Skeleton:
    """Return the skeleton of an adapter of a kind in a language, for a path or the language's default path."""
    row = _table()[language]
    row = {**row, **row.get(kind, {})}
    place = path or Path(row["path"])
    names = {"kind": kind, "path": str(place), "stem": place.stem}
    first = _table()["first"][kind]
    if row["impl"].startswith(TABLES):  # which goes by operations anyway
        first = [option for option in first if not option.startswith("--via")]
    files = {
        Path(written.format(**names)): c_header() if template == HEADER else TEMPLATES / template.format(**names)
        for written, template in row["files"].items()
    }
    return Skeleton(files, row.get("build", "").format(**names), row["impl"].format(**names), first, row["needs"])


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads((TEMPLATES / "templates.toml").read_text(encoding="utf-8"))


def configure_new_adapter(parser: argparse.ArgumentParser) -> None:
    """The command `new-adapter`."""
    parser.description = "Write the skeleton of an implementation: it runs as it is and answers a method or two."
    parser.add_argument("path", nargs="?", type=Path, help="default: my_adapter.py, or the folder my_adapter")
    parser.add_argument("--kind", choices=KINDS, default="language", help="what it is (default: a compiler)")
    parser.add_argument("--language", choices=LANGUAGES, default="python", help="what it is written in")
    parser.set_defaults(handler=new_adapter)


def new_adapter(arguments: argparse.Namespace) -> int:
    """Write the skeleton; never overwrite a file."""
    adapter_skeleton = skeleton(arguments.language, arguments.kind, arguments.path)
    try:
        adapter_skeleton.write()
    except OSError as error:
        remedy = "name a new file in a folder that can be written"
        print_error(error_text(str(error.filename), str(error.strerror), do=remedy))
        return 2
    print(f"{', '.join(map(str, adapter_skeleton.files))}: written; now try")
    if adapter_skeleton.build:
        print(f"  {adapter_skeleton.build}")
    for command in adapter_skeleton.commands:
        print(f"  {shlex.join(command)}")
    return 0


# `tessera-conformance serve`: any Python adapter, or a C library, as a process that speaks the line protocol.


def configure_serve(parser: argparse.ArgumentParser) -> None:
    """The command `serve`."""
    parser.add_argument("implementation", metavar="IMPL", help="reference, py:module:factory or cabi:/path/lib.so")
    parser.add_argument("--compiler", default=None, metavar="COMPILER", help=COMPILERS)
    parser.set_defaults(handler=serve_implementation)


def serve_implementation(arguments: argparse.Namespace) -> int:
    """Serve until the harness closes the session."""
    try:
        adapter = load_adapter(arguments.implementation, arguments.compiler)
    except ImplementationUnavailable as error:
        print_error(error)
        return 2
    with closing(adapter) if isinstance(adapter, PassingAdapter) else nullcontext():
        return serve(adapter)


# `tessera-conformance smoke`: one small question of each kind for the claimed documents and features, and its answer.


PROGRAM = "module m { func f(A: tensor<2xfp32>) -> tensor<2xfp32> { return A + A; } }"
ILLEGAL = "module m { func f(A: tensor<2xfp32>, B: tensor<3xfp32>) -> tensor<2xfp32> { return A + B; } }"
SIGNATURE = "f(X*, int n)"
H2D, D2H = 0, 1
AXES = {"tp": 1, "pp": 1, "dp": 1, "ep": 1}


@dataclass(frozen=True)
class Question:
    """A method and its parameters, the claim it belongs to, and the function that asks it and judges the answer."""

    method: str
    what: str
    document: str
    ask: Callable[[Implementation, Check], None]
    feature: str = "core"


def questions(hello: Hello, via: str) -> Sequence[Question]:
    """Return the questions that follow from the claims; without programs if the run will go by operations."""
    return [
        question
        for question in QUESTIONS
        if question.document in ("", *hello.documents)
        and (question.feature == "core" or hello.has(question.feature))
        and not (via == "operations" and question.method.startswith("language."))
    ]


def _parse(impl: Implementation, check: Check) -> None:
    modules = check.accepts(impl.language.parse(source=PROGRAM))["modules"]
    check.equal(modules, [{"name": "m", "declarations": [{"kind": "func", "name": "f"}]}], "the modules")


def _verify(impl: Implementation, check: Check) -> None:
    check.accepts(impl.language.verify(source=PROGRAM))


def _refuse(impl: Implementation, check: Check) -> None:
    check.rejects(impl.language.verify(source=ILLEGAL), category=("shapes", "types"))


def _lower(impl: Implementation, check: Check) -> None:
    functions = check.accepts(impl.language.lower(source=PROGRAM, to="graph"))["functions"]
    check.equal([function["name"] for function in functions], ["f"], "the functions of the module")


def _execute(impl: Implementation, check: Check) -> None:
    request = {"source": PROGRAM, "function": "f", "inputs": {"A": _floats(1, 2)}}
    outputs = check.returns(impl.language.execute(**request, level=impl.level))["outputs"]
    check.equal(len(outputs), 1, "the number of results")
    check.bits(outputs[0], _floats(2, 4))


def _evaluate(impl: Implementation, check: Check) -> None:
    request = {"operation": "add", "inputs": [_floats(1, 2), _floats(2, 2)], "attributes": {}}
    outputs = check.returns(impl.numerics.evaluate(**request, level=impl.level))["outputs"]
    check.equal(len(outputs), 1, "the number of results")
    check.bits(outputs[0], _floats(3, 4))


def _layout(impl: Implementation, check: Check) -> None:
    layout = check.returns(impl.abi.parameter_layout(signature=SIGNATURE))
    offsets = [parameter["offset"] for parameter in layout["parameters"]]
    check.equal(offsets, [0, 8], "the offsets of a pointer and an int")
    check.equal(layout["size"], 16, "the size of the parameter buffer")


def _version(impl: Implementation, check: Check) -> None:
    answer = impl.runtime.tessGetVersion()
    if isinstance(answer, Rejected) and answer.code == "TESS_ERR_NOT_INITIALIZED":  # another reading of AMB-RT-39
        check.returns(impl.runtime.tessInit(), "tessInit succeeds")
        answer = impl.runtime.tessGetVersion()
    version = check.returns(answer)
    check.true(min(version.values()) >= 0, "no part of the version is negative", version)


def _copy(impl: Implementation, check: Check) -> None:
    """Copy eight bytes to the device and back, on a stream of a mesh of the first device."""

    def call(function: str, **arguments: Any) -> Any:
        return check.returns(getattr(impl.runtime, function)(**arguments), f"{function} succeeds")

    sent = "0123456789abcdef"
    context = call("tessInit")["context"]
    answer = impl.runtime.tessxDevices()
    first = 0 if isinstance(answer, Unsupported) else check.returns(answer, "tessxDevices succeeds")["devices"][0]["id"]
    mesh = call("tessMeshCreate", context=context, deviceIds=[first], nDevices=1, axes=AXES)["mesh"]
    stream = call("tessStreamCreate", mesh=mesh, priority=0)["stream"]
    device = call("tessMalloc", mesh=mesh, bytes=8)["devPtr"]
    source, target = (call("tessxHostMemory", bytes=8)["hostPtr"] for _ in range(2))
    call("tessxHostWrite", hostPtr=source, data=sent)
    for to, from_, kind in ((device, source, H2D), (target, device, D2H)):
        copied = impl.runtime.tessMemcpyAsync(dst=to, src=from_, bytes=8, kind=kind, stream=stream)
        check.returns(copied, "the copy")
    call("tessStreamSynchronize", stream=stream)
    check.equal(call("tessxHostRead", hostPtr=target, bytes=8)["data"], sent, "the bytes that came back")
    # One alternative of AMB-RT-50 refuses to end a context with objects; a library may lack these functions.
    impl.runtime.tessFree(mesh=mesh, devPtr=device)
    impl.runtime.tessStreamDestroy(stream=stream)
    impl.runtime.tessMeshDestroy(mesh=mesh)
    call("tessShutdown", context=context)


def _null_context(impl: Implementation, check: Check) -> None:
    created = impl.runtime.tessMeshCreate(context=0, deviceIds=[0], nDevices=1, axes=AXES)
    check.rejects(created, category=("TESS_ERR_INVALID_VALUE", "TESS_ERR_NOT_INITIALIZED"))


def _all_reduce(impl: Implementation, check: Check) -> None:
    request = {"inputs": [_floats(1, 2), _floats(3, 4)], "op": "sum"}
    outputs = check.returns(impl.collectives.all_reduce(**request, level=impl.level))["outputs"]
    check.equal(len(outputs), 2, "a result for each rank")
    for output in outputs:
        check.bits(output, _floats(4, 6))


def _describe(impl: Implementation, check: Check) -> None:
    described = check.returns(impl.host_io.describe())
    check.true(bool(described["devices"]), "there is a device", described)


def _token(impl: Implementation, check: Check) -> None:
    producer = [{"op": "send", "channel": "c", "token": 7}, {"op": "close", "channel": "c"}]
    consumer = [{"op": "consume", "channel": "c", "body": []}]
    processes = [{"name": "p", "body": producer}, {"name": "q", "body": consumer}]
    program = {"channels": [{"name": "c"}], "kernels": [], "processes": processes}
    ending = check.returns(impl.wsp.execute(program=program))
    check.equal(ending["outcome"], "completed", "the outcome")
    check.equal(ending["arrivals"].get("q"), [{"channel": "c", "token": 7}], "the tokens of the consumer")


QUESTIONS = (
    Question("language.parse", "a module with a function", "language_ir", _parse),
    Question("language.verify", "a legal program", "language_ir", _verify),
    Question("language.verify", "a program with two shapes that do not add", "language_ir", _refuse),
    Question("language.lower", "a program to Graph IR", "language_ir", _lower, "lowering"),
    Question("language.execute", "A + A", "language_ir", _execute, "execution"),
    Question("numerics.evaluate", "an addition", "", _evaluate, "operation-access"),
    Question("abi.parameter_layout", "a pointer and an int", "runtime_abi", _layout, "parameter-layout"),
    Question("tessGetVersion", "the version", "runtime_abi", _version),
    Question("tessMemcpyAsync", "eight bytes to the device and back", "runtime_abi", _copy),
    Question("tessMeshCreate", "the refusal of a mesh in the context NULL", "runtime_abi", _null_context),
    Question("collectives.all_reduce", "a sum over two ranks", "collectives", _all_reduce),
    Question("host_io.describe", "what the endpoint has", "host_io", _describe),
    Question("wsp.execute", "a token between two processes", "wsp", _token),
)


def _floats(*values: int) -> Tensor:
    """Return a row of fp32 with small whole numbers."""
    words = {1: 0x3F800000, 2: 0x40000000, 3: 0x40400000, 4: 0x40800000, 6: 0x40C00000}
    return Tensor.from_words("fp32", (len(values),), [words[value] for value in values])


SOUND, UNSOUND, UNUSABLE = 0, 1, 2
NAME_WIDTH = 22


def configure_smoke(parser: argparse.ArgumentParser) -> None:
    """The command `smoke`."""
    parser.add_argument("implementation", nargs="?", metavar="IMPL", help=FORMS)
    parser.add_argument("--impl", metavar="IMPL", help="the same, as the other commands take it")
    parser.add_argument("--via", choices=WAYS, default="programs", help="as of the run: by operations asks no program")
    parser.add_argument("--compiler", default=None, metavar="COMPILER", help=COMPILERS)
    parser.add_argument("--deadline", type=float, default=10.0, metavar="SECONDS", help="for each call")
    parser.set_defaults(handler=reporting_errors(smoke, ImplementationUnavailable, RegistryError))


def smoke(arguments: argparse.Namespace) -> int:
    """Return 0 if no answer is wrong; 1 if one is, or breaks the protocol, or a claim is no feature; 2 without answers.

    An unsupported answer is not wrong here. A run counts it as a failure if it was claimed; the output says so.
    """
    named = [name for name in (arguments.implementation, arguments.impl) if name]
    if len(named) != 1:
        print_error(error_text("smoke", f"{len(named)} implementations are named", f"one, --impl and one of {FORMS}"))
        return UNUSABLE
    with closing(Session(locate(named[0], arguments.compiler), arguments.deadline, arguments.deadline)) as session:
        return _smoke(session, via_of(named[0], arguments.via))


def _smoke(session: Session, via: str) -> int:
    hello = session.open()
    if isinstance(hello, Fault):
        _print("session.open", describe(hello), hello)
        return UNSOUND
    _print("session.open", f"{hello.name} {hello.version}, claims {', '.join(hello.documents) or 'no document'}")
    strange = strange_claims(hello, load_registry(clauses_directory()))
    for sentence in strange:
        _print("session.open", f"wrong: {sentence}")
    asking = questions(hello, via)
    if not asking:
        print("nothing was asked, since nothing is claimed: name `documents` and `capabilities` in the Hello")
    implementation = Implementation(session, hello.level, via)
    sound = [_ask(session, implementation, question) for question in asking]
    return SOUND if sound and all(sound) and not strange else UNSOUND


def _ask(session: Session, implementation: Implementation, question: Question) -> bool:
    """Ask one question; return the outcome, and True unless the answer is wrong."""
    check, error = Check(), None
    try:
        question.ask(implementation, check)
    except Exception as raised:
        error = raised
    reset = session.reset()
    if isinstance(error, Unanswered) and isinstance(error.observation, Unsupported) and reset is None:
        claim = f"the core of {question.document}" if question.feature == "core" else f"the feature {question.feature}"
        _print(question.method, f"{describe(error.observation)}: {claim} is claimed, so that a run counts a failure")
        return True
    judgement = after_running(error, check.records, reset)
    fault = error.observation if isinstance(error, Unanswered) else reset
    word = {"pass": "right", "fail": "wrong"}.get(judgement.verdict) or judgement.verdict.replace("_", " ")
    _print(question.method, ": ".join(filter(None, [f"{word}, {question.what}", judgement.reason])), fault)
    return judgement.verdict == "pass"


def _print(method: str, what: str, observation: object = None) -> None:
    print(f"{method:{NAME_WIDTH}} {what}")
    if isinstance(observation, Fault) and observation.stderr.strip():
        print(visible("\n".join(quoted_tail(observation.stderr, f"{'':{NAME_WIDTH}} "))))
