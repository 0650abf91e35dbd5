"""A library that cannot be asked at all: what was found and what was expected, before any case runs."""

from __future__ import annotations

import struct

import pytest

from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.cabi import transport
from tessera_conformance.transports.locate import locate


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
    found = bytearray(build("steady").read_bytes())
    own = struct.unpack("<H", found[18:20])[0]
    other = 183 if own != 183 else 62
    found[18:20] = struct.pack("<H", other)
    path = tmp_path / "libother.so"
    path.write_bytes(found)
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
        (",fresh=yes", "fresh=yes"),
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
