"""`tessera-reference compile`, `inspect` and `explain` of module images."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tessera_reference.abi.fatbin import public_key, read, verify
from tessera_reference.cli import main

SOURCE = """module m {
  kernel twice(X: tensor<NxMxbf16>, N: int32, M: int32, Y: tensor<2xfp32>) { X = X + X; }
  kernel still(X: tensor<3x4xint8>, d: fp64) { X = X + X; }
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.tsr"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def compiled(program: Path, *options: str) -> Path:
    image = program.with_suffix(".fatbin")
    assert main(["compile", str(program), "-o", str(image), *options]) == 0
    return image


def test_compile_writes_an_image_for_the_targets(program: Path) -> None:
    assert read(compiled(program).read_bytes()).targets == ("sm_90",)
    fatbin = read(compiled(program, "--target", "gfx90a", "--target", "sm_80", "--ir-pack").read_bytes())
    assert (fatbin.targets, [section.kind for section in fatbin.sections]) == (("gfx90a", "sm_80"), ["graph-ir"])
    scheduled = read(compiled(program, "--tile", "8x8x8").read_bytes()).section("graph-ir")
    assert scheduled is not None and b'["tile", [8, 8, 8]]' in scheduled.data


def test_compile_takes_ir_text(program: Path, tmp_path: Path) -> None:
    section = read(compiled(program).read_bytes()).section("graph-ir")
    assert section is not None
    text = tmp_path / "m.mlir"
    text.write_bytes(section.data)
    assert main(["compile", str(text), "--at", "graph", "-o", str(tmp_path / "other.fatbin")]) == 0
    assert (tmp_path / "other.fatbin").read_bytes() == compiled(program).read_bytes()


@pytest.mark.parametrize("written", [bytes(range(32)), bytes(range(32)).hex().encode() + b"\n"])
def test_compile_signs(program: Path, tmp_path: Path, written: bytes) -> None:
    pytest.importorskip("cryptography", reason="pip install 'tessera-conformance[signing]'")
    (tmp_path / "key").write_bytes(written)
    verify(compiled(program, "--sign", str(tmp_path / "key")).read_bytes(), [public_key(bytes(range(32)))])


@pytest.mark.parametrize("written", [b"", b"secret" * 5, b"zz" * 32, bytes(33), b"\xff" * 64])
def test_what_is_no_key_is_refused_and_not_shown(
    program: Path, tmp_path: Path, written: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").write_bytes(written)
    assert main(["compile", str(program), "-o", str(tmp_path / "x"), "--sign", str(tmp_path / "key")]) == 2
    told = capsys.readouterr().err
    assert "32 bytes, or 64 hexadecimal digits" in told and "secret" not in told
    assert not (tmp_path / "x").exists()


def test_inspect_shows_header_sections_and_kernels(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = compiled(program, "--ir-pack")
    assert main(["inspect", str(image)]) == 0
    lines = capsys.readouterr().out.splitlines()
    section = read(image.read_bytes()).sections[0]
    assert lines == [
        "ABI 1.0",
        f"source IR sha256:{read(image.read_bytes()).ir_hash.hex()}",
        "targets sm_90",
        f"section graph-ir: {len(section.data)} bytes",
        "policy: that of the context",
        "kernel twice of module m: program, block 128x1x1, 0 bytes of shared memory, parameter buffer of 24 bytes",
        "  0x0000 X: ptr to NxMxbf16, written",
        "  0x0008 N: int32",
        "  0x000c M: int32",
        "  0x0010 Y: ptr to 2xfp32",
        "kernel still of module m: program, block 128x1x1, 0 bytes of shared memory, parameter buffer of 16 bytes",
        "  0x0000 X: ptr to 3x4xint8, written",
        "  0x0008 d: fp64",
    ]


def test_explain_tells_of_programs_and_of_images(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(program)]) == 0
    assert "x tessera.graph.add: a + b" in capsys.readouterr().out
    image = compiled(program)
    assert main(["explain", str(image)]) == 0
    assert "  fusion groups and tiles are decided at launch, for N, M" in capsys.readouterr().out.splitlines()
    assert main(["explain", "--json", str(image)]) == 0
    assert json.loads(capsys.readouterr().out)["tile_shapes"][0]["kernel"] == "still"


def test_explain_tells_of_a_launch(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = compiled(program, "--target", "sm_80", "--target", "gfx942")
    assert main(["explain", str(image), "--extent", "N=5", "--extent", "M=7", "--target", "gfx942"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "for N=5, M=7 on gfx942"
    assert "  fusion group 0: %X_0 = add -> tensor<5x7xbf16>" in lines
    assert not any("still" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["explain", "IMAGE", "--extent", "N"], "NAME=N"),
        (["explain", "IMAGE", "--extent", "N=1" + "0" * 5000], "N from 0 to 999999999"),
        (["explain", "IMAGE", "--extent", "K=3"], "launches give M, N"),
        (["explain", "IMAGE", "--extent", "M=3"], "no kernel has only these; there are M, N"),
        (["explain", "IMAGE", "--extent", "N=3", "--extent", "M=3", "--target", "sm_80"], "without code for sm_80"),
        (["inspect", "PROGRAM"], "magic number"),
        (["inspect", "NOWHERE"], "No such file"),
        (["compile", "PROGRAM", "-o", "IMAGE", "--target", "sm_91"], "target 'sm_91'"),
        (["compile", "PROGRAM", "-o", "FOLDER"], "irectory"),
        (["compile", "PROGRAM", "-o", "IMAGE", "--sign", "NOWHERE"], "No such file"),
        (["compile", "PROGRAM", "-o", "IMAGE", "--depth", "0"], "--depth is 0"),
    ],
)
def test_bad_input_is_told(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    compiled(program)
    paths = {
        "IMAGE": program.with_suffix(".fatbin"),
        "PROGRAM": program,
        "NOWHERE": tmp_path / "nowhere",
        "FOLDER": tmp_path,
    }
    assert main([str(paths.get(argument, argument)) for argument in arguments]) == 2
    assert said in capsys.readouterr().err


def test_an_illegal_program_is_told_as_ever(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text("module m {\n  kernel k(A: tensor<4xfp32>) { A = B; }\n}\n", encoding="utf-8")
    assert main(["compile", str(program), "-o", str(program.with_suffix(".fatbin"))]) == 2
    told = capsys.readouterr().err
    assert "error[types]" in told and ":2:" in told
    assert not program.with_suffix(".fatbin").exists()
