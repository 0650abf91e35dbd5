"""Images of the implementation's own compiler with bytes changed (runtime specification, 4.5, 8.1; AMB-RT-43).

Whatever the container is: an image is refused, when it is loaded, asked for its kernel or launched, or its kernel does
what it did. That an image without a checksum does what its bytes say now is another reading. It is no reason to end the
process, or to wait forever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, COUNT, D2H, MeshSession, compiled, opened
from tessera_conformance.chapters.runtime.kit.modules import filled, loading
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Observation, Rejected, Returned

PARTS = 8
"""Each case spoils an image at places of one of so many parts of it."""
PLACES = 6
"""So many places."""


def places(image: bytes, part: int) -> Iterator[int]:
    """Places that are spread evenly over a part of an image."""
    start, stop = part * len(image) // PARTS, (part + 1) * len(image) // PARTS
    for step in range(PLACES):
        yield start + (stop - start) * step // PLACES


def flipped(image: bytes, place: int) -> bytes:
    """One bit turned."""
    return image[:place] + bytes([image[place] ^ 1 << place % 8]) + image[place + 1 :]


def filled_up(image: bytes, place: int) -> bytes:
    """A byte becomes 255."""
    return image[:place] + b"\xff" + image[place + 1 :]


def zeroed(image: bytes, place: int) -> bytes:
    """A run of zeros of up to 64 bytes."""
    return (image[:place] + bytes(64) + image[place + 64 :])[: len(image)]


def cut(image: bytes, place: int) -> bytes:
    """The bytes before a place."""
    return image[: max(place, 1)]


def left_out(image: bytes, place: int) -> bytes:
    """Without eight bytes."""
    return image[:place] + image[place + 8 :]


def doubled(image: bytes, place: int) -> bytes:
    """With eight bytes twice."""
    return image[: place + 8] + image[place:]


SPOILED: dict[str, Callable[[bytes, int], bytes]] = {
    "a bit": flipped,
    "a byte": filled_up,
    "zeros": zeroed,
    "cut off": cut,
    "left out": left_out,
    "twice": doubled,
}


def outcome(session: MeshSession, image: bytes) -> str:
    """Load and launch an image; return `refused`, `refused later`, or `same` or `other` for its results."""
    where = {"image": session.host(image), "size": len(image)}
    answer = session.attempt("tessModuleLoad", context=session.context, **where)
    if refusal(session, answer):
        return "refused"
    assert isinstance(answer, Returned)
    asked = session.attempt("tessKernelGet", module=answer.value["module"], name="fill")
    if refusal(session, asked):
        return "refused later"
    assert isinstance(asked, Returned)
    stream = session.another_stream()
    pointer, target = stream.upload(bytes(BYTES)), stream.host(bytes(BYTES))
    launched = stream.launching(asked.value["kernel"], packed(("int32", 7), ("ptr", pointer)))
    if refusal(session, launched):
        return "refused later"
    stream.copy(target, pointer, BYTES, D2H)
    if refusal(session, stream.attempt("tessStreamSynchronize", stream=stream.stream)):
        return "refused later"
    return "same" if values_of("int32", stream.host_bytes(target, BYTES)) == [7] * COUNT else "other"


def refusal(session: MeshSession, answer: Observation) -> bool:
    """True if a call was refused; a crash or a hang ends the case."""
    if isinstance(answer, Rejected):
        return True
    session.check.returns(answer, "the call comes back")
    return False


@clause("RT-04.5-04", "RT-07-02")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_spoiled_image_is_refused_or_does_what_it_did(impl, check, spoil, part):
    """Wherever its bytes are changed; and the image itself loads afterwards, and runs."""
    session = opened(impl, check)
    image = bytes.fromhex(compiled(impl, check))
    actual = {place: outcome(session, spoil(image, place)) for place in places(image, part)}
    later = "refused later" in actual.values()
    check.reading("AMB-RT-43", "what is wrong is found where a kernel is asked for or launched", later)
    check.reading("AMB-RT-43", "an image without a checksum does what its bytes say", "other" in actual.values())
    wrong = {place: what for place, what in actual.items() if what not in ("refused", "same")}
    check.equal(wrong, {}, "images that are neither refused nor do what they did")
    module = check.returns(loading(session, image.hex()), "the image itself loads")["module"]
    check.equal(filled(session, session.kernel_of(module, "fill"), 3), [3] * COUNT, "what its kernel writes")


@clause("RT-04.5-04")
@pytest.mark.parametrize("more", [1, 8, 4096])
def test_bytes_behind_an_image_change_nothing(impl, check, more):
    """They are refused, or the kernel does what it did."""
    session = opened(impl, check)
    image = bytes.fromhex(compiled(impl, check))
    actual = outcome(session, image + b"\xa5" * more)
    check.reading(
        "AMB-RT-43", "what is wrong is found where a kernel is asked for or launched", actual == "refused later"
    )
    check.true(actual in ("refused", "same"), "the image is refused, or does what it did", actual)
