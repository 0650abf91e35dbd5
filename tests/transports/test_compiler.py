"""`--compiler`, and an implementation behind a transport that is served again."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.adapter import MalformedAnswer, NotSupported, Refusal
from tessera_conformance.check import Check, CheckFailed
from tessera_conformance.protocol import Fault, Hello, Rejected, Returned, Unsupported
from tessera_conformance.session import Session
from tessera_conformance.transports import ImplementationUnavailable, Inapplicable
from tessera_conformance.transports.locate import (
    CommandCompiler,
    CompilingTransport,
    DirectTransport,
    ImplementationCompiler,
    PassingAdapter,
    locate,
)
from tessera_conformance.verdicts import Judgement, after_running

COMPILER = """import json, os, signal, sys, time
source, output, *options = sys.argv[1:]
text = open(source).read()
with open({count!r}, "a") as file:
    file.write(os.path.basename(source) + " " + (open(options[0]).read() if options else "") + "\\n")
if text == "refuse":
    sys.exit("program.tsr:1:2: error[shapes]: inner dimensions differ")
if text == "refuse plainly":
    sys.exit("no")
if text == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
if text == "hang":
    time.sleep(60)
if text != "nothing":
    open(output, "wb").write(text.upper().encode())
"""


class Machine:
    """A runtime that does not compile."""

    def hello(self) -> dict[str, Any]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "acme", "version": "1"},
            "documents": ["runtime_abi"],
        }

    def runtime_tessxDevices(self) -> dict[str, Any]:  # noqa: N802
        targets = ("gfx90a", "sm_90", "gfx90a")
        return {"devices": [{"id": i, "target": target, "memory_bytes": 1} for i, target in enumerate(targets)]}

    def abi_inspect(self, **params: Any) -> dict[str, Any]:
        raise AssertionError("is not asked")


class UnsupportingMachine(Machine):
    """Supports no image, and says so where `function` is asked."""

    function, code = "tessModuleLoad", "TESS_ERR_UNSUPPORTED"

    def runtime_tessModuleLoad(self, **params: Any) -> dict[str, Any]:  # noqa: N802
        return self._refused("tessModuleLoad") or {"module": 1}

    def runtime_tessKernelGet(self, **params: Any) -> dict[str, Any]:  # noqa: N802
        return self._refused("tessKernelGet") or {"kernel": 1}

    def _refused(self, function: str) -> None:
        from tessera_conformance.adapter import Refusal

        if function == self.function:
            raise Refusal(self.code, "call", "no")


class CountingCompiler:
    """Compiles to the letters of the targets, and nothing called `bad`; `asked` has the requests."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def hello(self) -> dict[str, Any]:
        return Machine().hello()

    def abi_compile(self, **params: Any) -> dict[str, Any]:
        self.asked.append(params)
        if params["source"] == "bad":
            from tessera_conformance.adapter import Refusal

            raise Refusal("types", "verify", "bad is no program")
        return {"image": "".join(params.get("targets", ["none"])).encode().hex()}


def with_command(tmp_path: Path, places: str = "{input} {output}", deadline: float = 20.0) -> Session:
    program = tmp_path / "acmec.py"
    program.write_text(COMPILER.format(count=str(tmp_path / "count")))
    command = shlex.join([sys.executable, str(program)]) + " " + places
    machine = DirectTransport(Machine, "acme")
    return Session(CompilingTransport(machine, CommandCompiler(command)), deadline)


def compiled(session: Session, source: str, **options: Any) -> Any:
    return session.call("abi.compile", {"source": source} | options)


def test_a_program_makes_the_image_once(tmp_path):
    session = with_command(tmp_path)
    for _ in range(3):
        assert compiled(session, "abc") == Returned({"image": b"ABC".hex()})
    assert compiled(session, "abd") == Returned({"image": b"ABD".hex()})
    assert (tmp_path / "count").read_text() == "program.tsr \nprogram.tsr \n"


def test_its_options_come_in_a_file(tmp_path):
    session = with_command(tmp_path, "{input} {output} {options}")
    options = {"at": "tile", "targets": ["sm_90"], "policy": {"deterministic": 1}}
    assert isinstance(compiled(session, "abc", **options), Returned)
    name, _, told = (tmp_path / "count").read_text().partition(" ")
    assert (name, json.loads(told)) == ("program.mlir", options)


def test_options_that_it_cannot_be_told_say_nothing_of_the_implementation(tmp_path):
    with pytest.raises(Inapplicable, match="compiles with targets, and --compiler has no place"):
        compiled(with_command(tmp_path), "abc", targets=["sm_90"])


def test_an_implementation_with_a_compiler_claims_it(tmp_path):
    hello = with_command(tmp_path).open()
    assert isinstance(hello, Hello) and hello.has("module-compiler")


def test_its_refusals_are_rejections(tmp_path):
    session = with_command(tmp_path)
    assert compiled(session, "refuse") == Rejected("shapes", "verify", "inner dimensions differ")
    assert compiled(session, "refuse plainly") == Rejected("TESS_ERR_INVALID_VALUE", "call", "no")


@pytest.mark.parametrize(
    ("source", "kind", "said"),
    [
        ("crash", "crash", "ended with signal SIGSEGV"),
        ("hang", "hang", "no image within 1 s"),
        ("nothing", "protocol_error", "wrote no {output}"),
    ],
)
def test_what_it_does_wrong_is_its_fault(tmp_path, source, kind, said):
    session = with_command(tmp_path, deadline=1.0)
    observation = compiled(session, source)
    assert isinstance(observation, Fault)
    assert observation.kind == kind
    assert said in observation.detail
    assert "the compiler " in observation.detail
    session.deadline = 20.0
    assert isinstance(compiled(session, "abc"), Returned)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("acmec", "{input} and {output}"),
        ("acmec {input}", "{input} and {output}"),
        ("no-such-acmec {input} {output}", "no program 'no-such-acmec'"),
        ("acmec '{input} {output}", "balance the quotes"),
        ("py:no_such_module:make", "there is no module no_such_module"),
    ],
)
def test_a_compiler_that_is_none_is_refused_at_once(command, said):
    with pytest.raises(ImplementationUnavailable, match=said.replace("{", r"\{")):
        locate("py:json:loads", command)


def with_implementation(label: str) -> tuple[Session, CountingCompiler]:
    compiler = CountingCompiler()
    transport = DirectTransport(lambda: compiler, "compiler")
    machine = DirectTransport(Machine, "acme")
    return Session(CompilingTransport(machine, ImplementationCompiler(label, lambda: transport))), compiler


def test_an_implementation_makes_the_image_once():
    session, compiler = with_implementation("py:acme:make")
    for _ in range(2):
        assert compiled(session, "abc") == Returned({"image": b"none".hex()})
    assert compiled(session, "bad") == Rejected("types", "verify", "bad is no program")
    assert [request["source"] for request in compiler.asked] == ["abc", "bad"]


def test_the_reference_compiles_for_the_devices_of_the_implementation():
    session, compiler = with_implementation("reference")
    assert compiled(session, "abc") == Returned({"image": b"gfx90asm_90".hex()})
    assert compiled(session, "abc", targets=["sm_80"]) == Returned({"image": b"sm_80".hex()})
    assert [request["targets"] for request in compiler.asked] == [["gfx90a", "sm_90"], ["sm_80"]]


def test_what_the_reference_s_compiler_refuses_says_nothing_of_the_implementation():
    session, _ = with_implementation("reference")
    with pytest.raises(Inapplicable, match="types: bad is no program: name the compiler of acme with --compiler"):
        compiled(session, "bad")
    with pytest.raises(Inapplicable, match="judges an image"):
        session.call("abi.inspect", {"image": ""})


def test_a_case_that_says_nothing_is_inapplicable_unless_something_was_wrong():
    reason = Inapplicable("judges an image")
    assert after_running(reason, [], None) == Judgement("inapplicable", "judges an image", "question")
    assert after_running(reason, [], Fault("crash", "it died")) == Judgement("crash", "it died")
    check = Check()
    with pytest.raises(CheckFailed):
        check.equal(1, 2, "a number")
    assert after_running(reason, check.records, None).verdict == "fail"


LOAD = ("runtime.tessModuleLoad", {"context": 1, "image": "00"})
GET = ("runtime.tessKernelGet", {"module": 1, "name": "k"})


@pytest.mark.parametrize(("function", "asked"), [("tessModuleLoad", LOAD), ("tessKernelGet", GET)])
def test_an_image_of_the_reference_that_a_runtime_does_not_support_says_nothing_of_it(monkeypatch, function, asked):
    """Another status does, and so does an image of its own compiler."""
    monkeypatch.setattr(UnsupportingMachine, "function", function)
    machine = DirectTransport(UnsupportingMachine, "acme")

    def session(label: str) -> Session:
        compiler = DirectTransport(CountingCompiler, label)
        return Session(CompilingTransport(machine, ImplementationCompiler(label, lambda: compiler)))

    with pytest.raises(Inapplicable, match=f"{function} does not support this image"):
        session("reference").call(*asked)
    own = session("py:acme:make").call(*asked)
    assert isinstance(own, Rejected)
    monkeypatch.setattr(UnsupportingMachine, "code", "TESS_ERR_INVALID_VALUE")
    other = session("reference").call(*asked)
    assert isinstance(other, Rejected)


class Adapter:
    """Answers in every way that there is."""

    def hello(self) -> dict[str, Any]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "acme", "version": "1"},
            "documents": ["runtime_abi"],
        }

    def host_io_memory(self, **params: Any) -> Any:
        return {"data": "00"}

    def abi_pack(self, **params: Any) -> Any:
        diagnostics = [{"category": "types", "message": "no", "operands": ["a"]}]
        raise Refusal("types", "verify", "no", diagnostics)

    def abi_unpack(self, **params: Any) -> Any:
        raise NotSupported("memory")

    def abi_header(self, **params: Any) -> Any:
        raise MalformedAnswer("no text")


@pytest.mark.parametrize("method", ["host_io.memory", "abi.pack", "abi.unpack", "abi.header", "abi.constants"])
def test_an_answer_passes_as_it_is(method):
    inner = DirectTransport(Adapter, "inner")
    outer = Session(DirectTransport(lambda: PassingAdapter(inner), "outer"))
    expected = Session(DirectTransport(Adapter, "inner")).call(method, {})
    assert outer.call(method, {}) == expected


def test_the_answers_are_of_every_kind():
    session = Session(DirectTransport(Adapter, "inner"))
    kinds = [type(session.call(f"abi.{name}", {})) for name in ("pack", "unpack", "header", "constants")]
    assert kinds == [Rejected, Unsupported, Fault, Unsupported]
    assert isinstance(session.call("host_io.memory", {}), Returned)
