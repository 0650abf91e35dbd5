"""Libraries that load and behave: arguments, outputs, statuses, host memory, the Hello; and those that do not load."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tessera_conformance.protocol import Diagnostic, Fault, Hello, Rejected, Returned, Unsupported
from tessera_conformance.session import Session
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.cabi import transport
from tessera_conformance.transports.locate import locate


@pytest.fixture(scope="module")
def running(build) -> Iterator[Session]:
    """One session for many tests."""
    session = Session(locate(f"cabi:{build('steady')}"))
    yield session
    session.close()


@pytest.fixture
def steady(running) -> Session:
    """A session with the library that does as it should, after a reset."""
    assert running.reset() is None
    return running


AXES = {"tp": 1, "pp": 2, "dp": 3, "ep": 4}
CONFIG = {"grid": [1, 2, 3], "block": [4, 5, 6], "shmemBytes": 1 << 40, "flags": 15}
MESH = {"context": 1, "deviceIds": [3, 1], "axes": AXES}
LAUNCH = {"kernel": 1, "mesh": 1, "cfg": CONFIG, "argBuffer": "0102ff", "stream": 1}
SAID = [
    ("tessMeshCreate", MESH, "context 1, ids 3 1, count 2, axes 1 2 3 4, mesh 1"),
    ("tessMeshCreate", MESH | {"null": ["mesh"]}, "context 1, ids 3 1, count 2, axes 1 2 3 4, mesh 0"),
    ("tessMeshCreate", MESH | {"deviceIds": None, "nDevices": 7}, "context 1, ids NULL, count 7, axes 1 2 3 4, mesh 1"),
    ("tessMeshCreate", MESH | {"context": 0, "nDevices": -1}, "context 0, ids, count -1, axes 1 2 3 4, mesh 1"),
    ("tessLaunch", LAUNCH, "grid 1 2 3, block 4 5 6, 1099511627776 bytes shared, flags f, 3 bytes from data ff"),
    (
        "tessLaunch",
        LAUNCH | {"argBuffer": None},
        "grid 1 2 3, block 4 5 6, 1099511627776 bytes shared, flags f, 0 bytes from NULL 00",
    ),
    (
        "tessLaunch",
        LAUNCH | {"argSize": 2},
        "grid 1 2 3, block 4 5 6, 1099511627776 bytes shared, flags f, 2 bytes from data 02",
    ),
    ("tessKernelGet", {"module": 1, "name": "fill"}, "name fill"),
    ("tessKernelGet", {"module": 1, "name": None}, "name NULL"),
    ("tessxPoke", {"mesh": 1, "rank": 5, "devPtr": 8, "data": "00ee"}, "rank 5, 2 bytes, the last ee"),
    ("tessxSetSchedule", {"policy": "fifo"}, "fifo, seed absent, choices NULL, untimed 0"),
    (
        "tessxSetSchedule",
        {"policy": "replay", "seed": 1, "choices": [0, 2], "untimed": True},
        "replay, seed given, choices [0,2], untimed 1",
    ),
]


@pytest.mark.parametrize(("function", "given", "said"), SAID)
def test_arguments_arrive_as_c_has_them(steady, function, given, said):
    observation = steady.call(f"runtime.{function}", given)
    assert observation == Rejected("TESS_ERR_INVALID_VALUE", "call", said)


def test_outputs_come_back(steady):
    session = steady
    policy = {"stableReductions": 0, "deterministic": 1, "rngStateless": 0, "allowFastMath": 5}
    assert session.call("runtime.tessSetNumericsPolicy", {"context": 1, "policy": policy}) == Returned({})
    assert session.call("runtime.tessGetNumericsPolicy", {"context": 1}) == Returned({"policy": policy})
    assert session.call("runtime.tessxCacheUse", {}) == Returned({"hits": 1 << 40, "misses": 3})
    devices = [{"id": 0, "target": "sm_90", "memory_bytes": 1024}]
    assert session.call("runtime.tessxDevices", {}) == Returned({"devices": devices})
    context = session.call("runtime.tessInit", {})
    assert isinstance(context, Returned)
    assert context.value["context"] > 0


@pytest.mark.parametrize("count", [0, 1, 65536, 65537, 1 << 20])
def test_data_comes_whole_however_long(steady, count):
    asked = {"mesh": 1, "rank": 0, "devPtr": 8, "bytes": count}
    assert steady.call("runtime.tessxPeek", asked) == Returned({"data": "5a" * count})


def test_a_null_policy_and_a_null_output_reach_the_library(steady):
    session = steady
    refused = session.call("runtime.tessSetNumericsPolicy", {"context": 1, "policy": None})
    assert refused == Rejected("TESS_ERR_INVALID_VALUE", "call", "tessSetNumericsPolicy: policy is NULL")
    refused = session.call("runtime.tessGetNumericsPolicy", {"context": 1, "null": ["policy"]})
    assert refused == Rejected("TESS_ERR_INVALID_VALUE", "call", "tessGetNumericsPolicy: policy is NULL")


def test_a_method_without_a_function_is_unsupported(steady):
    session = steady
    for method in ("runtime.tessMalloc", "abi.pack", "language.parse", "binding.listing"):
        assert session.call(method, {}) == Unsupported(method)


def test_host_memory_is_that_of_the_process_that_loads_the_library(steady):
    session = steady

    def new(function: str, **arguments: int) -> int:
        actual = session.call(f"runtime.{function}", arguments)
        assert isinstance(actual, Returned)
        return int(actual.value["hostPtr"])

    source, pinned = new("tessxHostMemory", bytes=4), new("tessHostAlloc", bytes=4, kind=1)
    assert session.call("runtime.tessxHostWrite", {"hostPtr": source, "data": "01020304"}) == Returned({})
    copy = {"dst": pinned, "src": source, "bytes": 4, "kind": 0, "stream": 1}
    assert session.call("runtime.tessMemcpyAsync", copy) == Returned({})
    assert session.call("runtime.tessxHostRead", {"hostPtr": pinned + 1, "bytes": 3}) == Returned({"data": "020304"})
    for pointer, count in ((pinned, 5), (source - 1, 1), (0, 1), (pinned, -1)):
        refused = session.call("runtime.tessxHostRead", {"hostPtr": pointer, "bytes": count})
        assert isinstance(refused, Rejected), (pointer, count)
    assert session.call("runtime.tessHostFree", {"hostPtr": pinned}) == Returned({})
    assert isinstance(session.call("runtime.tessxHostRead", {"hostPtr": pinned, "bytes": 1}), Rejected)


def living(session) -> tuple[int, int]:
    """The contexts that live, and those ever made."""
    found = session.call("runtime.tessGetVersion", {}).value
    return found["major"], found["minor"]


def test_a_reset_shuts_down_every_context(build, opened):
    session = opened(build("steady"))
    contexts = [session.call("runtime.tessInit", {}).value["context"] for _ in range(3)]
    session.call("runtime.tessShutdown", {"context": contexts[1]})
    assert living(session) == (2, 3)
    assert session.reset() is None
    assert living(session) == (0, 3)


def test_the_table_is_asked_where_there_is_one(build, opened):
    session = opened(build("table"))
    assert session.call("runtime.tessGetVersion", {}) == Returned({"major": 5, "minor": 6, "patch": 7})
    assert session.call("runtime.tessShutdown", {"context": 1}) == Unsupported("runtime.tessShutdown")
    assert session.call("runtime.tessMeshCreate", MESH) == Unsupported("runtime.tessMeshCreate")


HEADER = """#define TESS_LAUNCH_DEFAULT 0u
#define TESS_LAUNCH_CAPTURE (1u << 1) /* no (1 << 7) */
typedef enum { TESS_OK = 0, TESS_ERR_A, TESS_ERR_B = TESS_ERR_A + 4, TESS_ERR_C } tessStatus_t;
"""
DESCRIPTION = """capabilities = { zero-sizes = "unsupported" }
arithmetic = { level = "deterministic" }
[implementation]
name = "acme"
[[devices]]
id = 4
target = "gfx90a"
memory_bytes = 64
"""


def test_the_hello_follows_from_the_functions(steady):
    hello = steady.open()
    assert isinstance(hello, Hello)
    assert (hello.name, hello.version, hello.documents) == ("libsteady", "7.1", ("runtime_abi",))
    features = ("device-list", "host-memory", "last-error", "module-compiler", "rank-memory", "zero-sizes")
    assert hello.capabilities == dict.fromkeys(features, "enforced")


def test_the_header_answers_for_itself(build, opened, tmp_path):
    (tmp_path / "acme.h").write_text(HEADER)
    session = opened(build("steady"), f",header={tmp_path}/acme.h")
    assert session.call("abi.header", {}) == Returned({"text": HEADER})
    assert session.call("abi.constants", {}) == Returned(
        {
            "constants": {
                "TESS_LAUNCH_DEFAULT": 0,
                "TESS_LAUNCH_CAPTURE": 2,
                "TESS_OK": 0,
                "TESS_ERR_A": 1,
                "TESS_ERR_B": 5,
                "TESS_ERR_C": 6,
            }
        }
    )
    assert opened(build("steady")).call("abi.constants", {}) == Unsupported("abi.constants")


@pytest.mark.parametrize("folder", [".", "include"])
def test_the_header_is_found_beside_the_library(build, opened, tmp_path, folder):
    library = tmp_path / "lib" / "libacme.so.2"
    library.parent.mkdir()
    library.write_bytes(build("steady").read_bytes())
    place = library.parent if folder == "." else tmp_path / "include"
    place.mkdir(exist_ok=True)
    (place / "tessera.h").write_text(HEADER)
    session = opened(library)
    assert session.call("abi.header", {}) == Returned({"text": HEADER})
    hello = session.open()
    assert isinstance(hello, Hello)
    assert hello.name == "libacme"
    assert hello.has("c-abi")


def test_a_description_speaks_for_a_library(build, opened, tmp_path):
    path = tmp_path / "acme.toml"
    path.write_text(DESCRIPTION)
    session = opened(build("table"), f",description={path}")
    devices = [{"id": 4, "target": "gfx90a", "memory_bytes": 64}]
    assert session.call("runtime.tessxDevices", {}) == Returned({"devices": devices})
    hello = session.open()
    assert isinstance(hello, Hello)
    assert (hello.name, hello.version, hello.level) == ("acme", "unknown", "deterministic")
    assert not hello.has("zero-sizes")


def test_the_shipped_header_has_the_constants_of_the_specification():
    from tessera_conformance.transports.cabi.options import constants

    text = (Path(__file__).parents[3] / "reference/tessera_reference/abi/tessera.h").read_text()
    actual = constants(text)
    assert actual["TESS_ERR_CACHE_CORRUPT"] == 11
    assert actual["TESS_LAUNCH_LOW_LATENCY"] == 8
    assert actual["TESS_COPY_D2D"] == 2


def test_an_outcome_says_more_than_a_status_where_it_agrees(build, opened):
    session = opened(build("outcomes"))

    def failing(how: str):
        return session.call("abi.parameter_layout", {"signature": how})

    assert failing("types") == Rejected("types", "verify", "no", (Diagnostic("types", "no"),))
    assert failing("unsupported") == Unsupported("memory")
    plain = "tessxParameterLayout gave TESS_ERR_OUT_OF_MEMORY"
    for how in ("stale", "other"):
        assert failing(how) == Rejected("TESS_ERR_OUT_OF_MEMORY", "call", plain)
    observation = failing("returned")
    assert isinstance(observation, Fault)
    assert observation.kind == "protocol_error"


def refusal(place) -> str:
    with pytest.raises(ImplementationUnavailable) as caught:
        locate(f"cabi:{place}")
    text = str(caught.value)
    assert text.startswith(f"cabi:{place}: ")
    assert "; " in text
    return text


def test_a_file_that_is_not_there(tmp_path):
    assert f"there is no file {tmp_path}/libnone.so" in refusal(tmp_path / "libnone.so")
    assert "no library is named" in refusal("")


def test_a_library_for_another_machine(build, tmp_path):
    actual = bytearray(build("steady").read_bytes())
    own = struct.unpack("<H", actual[18:20])[0]
    other = 183 if own != 183 else 62
    actual[18:20] = struct.pack("<H", other)
    path = tmp_path / "libother.so"
    path.write_bytes(actual)
    assert f"is for {transport.MACHINES[other]}; this machine is {transport.MACHINES[own]}" in refusal(path)


def test_a_file_that_is_no_library(tmp_path, build):
    build("steady")
    path = tmp_path / "libtext.so"
    path.write_text("no library")
    assert "it cannot be loaded" in refusal(path)


def test_a_library_that_lacks_a_symbol(build):
    assert "undefined symbol: acme_driver_open" in refusal(build("loading", "LACKS"))


def test_a_library_that_has_no_function_of_the_interface(build):
    text = refusal(build("loading", "EMPTY"))
    assert "exports no function of the interface" in text
    assert "tessInit, tessShutdown, tessGetVersion" in text


def test_a_library_that_exits_when_it_is_loaded(build):
    text = refusal(build("loading", "EXITS"))
    assert "ended with exit code 3" in text
    assert "acme: no licence" in text


def test_a_library_that_crashes_when_it_is_loaded(build):
    assert "ended with signal SIGSEGV" in refusal(build("loading", "CRASHES"))


def test_a_library_whose_loading_does_not_end(build, monkeypatch):
    monkeypatch.setattr(transport, "DEADLINE", 0.5)
    assert "does not end within 0.5 s" in refusal(build("loading", "HANGS"))


def test_a_suite_without_cffi(build, monkeypatch):
    library = build("steady")
    monkeypatch.setattr(transport, "find_spec", lambda name: None)
    assert "cffi is not installed" in refusal(library)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (",header=none.h", "header none.h: No such file"),
        (",description=none.toml", "none.toml: No such file"),
    ],
)
def test_options_that_mean_nothing(build, options, said):
    assert said in refusal(f"{build('steady')}{options}")


@pytest.mark.parametrize(
    ("text", "said"),
    [("name = 3", "name"), ("devices = []", "devices"), ("= 1", "acme.toml: "), ("[capabilities]\nx = 'maybe'", "x")],
)
def test_a_description_that_says_what_no_library_has(build, tmp_path, text, said):
    path = tmp_path / "acme.toml"
    path.write_text(text)
    assert said in refusal(f"{build('steady')},description={path}")
