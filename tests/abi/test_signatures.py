"""Kernel signatures as the specification writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status, parse_signature


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()", []),
        ("f(void)", []),
        (" f ( X* , Y * ) ; ", ["X ptr", "Y ptr"]),
        ("f(int a, float b, double c)", ["a int32", "b fp32", "c fp64"]),
        ("f(int8_t a, int16_t b, int32_t c, int64_t d)", ["a int8", "b int16", "c int32", "d int64"]),
        ("f(bool a, bf16 b, fp8_e4m3 c, complex128 d)", ["a bool", "b bf16", "c fp8_e4m3", "d complex128"]),
        ("f(float* x, const void *y, float const * z, MyStruct* s)", ["x ptr", "y ptr", "z ptr", "s ptr"]),
        ("f(const int n,\n  const float f)", ["n int32", "f fp32"]),
    ],
)
def test_what_is_read(text: str, expected: list[str]) -> None:
    found = parse_signature(text)
    assert found.name == "f"
    assert [f"{each.name} {each.type}" for each in found.parameters] == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f",
        "f(",
        "f(int a",
        "f(int a))",
        "(int a)",
        "int f(int a)",
        "for(int a)",
        "1f(int a)",
        "f(,)",
        "f(int a,)",
        "f(int)",
        "f(float*)",
        "f(bf16*)",
        "f(int bool)",
        "f(a)",
        "f(int int)",
        "f(unsigned int a)",
        "f(long a)",
        "f(ptr a)",
        "f(tf32 a)",
        "f(struct Pair p)",
        "f(Pair p)",
        "f(int a[4])",
        "f(int a[])",
        "f(X**)",
        "f(float** x)",
        "f(struct { int a; } p)",
        "f(int (*callback)(int))",
        "f(int a = 3)",
        "f(...)",
        "f(int größe)",
        b"f(int a)",
        None,
    ],
)
def test_what_is_refused(text: object) -> None:
    with pytest.raises(Failure) as caught:
        parse_signature(text)  # type: ignore[arg-type]
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_a_refusal_says_what_stands_there_and_what_may() -> None:
    with pytest.raises(
        Failure, match=r"the parameter 'Pair p'; expected name\(parameter, \.\.\.\), each parameter being"
    ):
        parse_signature("f(int a, Pair p)")


@given(st.text() | st.text("f(int a, X*)\n;", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    status = Status.TESS_OK
    try:
        parse_signature(text)
    except Failure as failure:
        status = failure.status
    assert status in (Status.TESS_OK, Status.TESS_ERR_INVALID_VALUE)
