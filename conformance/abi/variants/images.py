"""Other module images: a container of one's own, its hash, and the C header (runtime specification, 4 and 8.1)."""

from __future__ import annotations

import hashlib
import re
import zlib
from typing import Any

from tessera_conformance.strength import altered, varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.adapter import abi as adapter_abi

IMAGES = (
    "abi/module-images/*",
    "abi/collective-plans/*",
    "abi/kernel-convention/*",
    *(
        f"runtime/{room}/*"
        for room in ("cache*", "explain", "launch*", "module*", "kernel-arguments", "sample-program")
    ),
)
SEAL = b"ACME\x7f"


def sealed(image: bytes) -> bytes:
    """The image as it is answered."""
    return SEAL + hashlib.sha256(image).digest()[:8] + zlib.compress(image)[::-1]


def opened(image: bytes) -> bytes:
    """Return the contents of an image; bytes that are no image stay as they are, and are refused."""
    if not image.startswith(SEAL):
        return image
    try:
        found = zlib.decompress(image[13:][::-1])
    except zlib.error:
        return image
    return found if hashlib.sha256(found).digest()[:8] == image[5:13] else image


def of_text(image: Any) -> Any:
    """Return the contents of an image given as hexadecimal digits, as digits."""
    if not isinstance(image, str):
        return image
    try:
        return opened(bytes.fromhex(image)).hex()
    except ValueError:
        return image


@varies("AMB-RT-21", "has a container of its own: compressed, backwards and with another checksum", *IMAGES)
class OwnContainer(ReferenceAdapter):
    """Nobody else can read its images."""

    def abi_compile(self, **arguments: Any) -> dict[str, Any]:
        """The image of a program."""
        answer = super().abi_compile(**arguments)
        return {"image": sealed(bytes.fromhex(answer["image"])).hex()}

    def abi_inspect(self, *, image: Any) -> dict[str, Any]:
        """Return the inspection of an image."""
        return super().abi_inspect(image=of_text(image))

    def runtime_tessModuleLoad(self, *, image: Any, size: Any = None, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """A module; an image in the memory of the host is read there."""
        if type(image) is int and image and type(size) is int:
            image = super().runtime_tessxHostRead(hostPtr=image, bytes=size)["data"]
        if not isinstance(image, str) or type(size) is not int:
            return super().runtime_tessModuleLoad(image=of_text(image), size=size, **arguments)
        held = of_text(image[: 2 * size])
        beyond = max(0, size - len(image) // 2)
        return super().runtime_tessModuleLoad(image=held, size=len(held) // 2 + beyond, **arguments)

    def binding_listing(self, *, image: Any, **arguments: Any) -> dict[str, Any]:
        """The listing of section 5, with a module of such an image."""
        return super().binding_listing(image=of_text(image), **arguments)


@varies("AMB-RT-104", "has hashes of 16 bytes", *IMAGES)
class ShortHash(ReferenceAdapter):
    """A digest of its own."""

    def abi_inspect(self, *, image: Any) -> dict[str, Any]:
        """Return the inspection of an image, with a shorter hash."""
        answer = super().abi_inspect(image=image)
        return answer | {"ir_hash": hashlib.md5(bytes.fromhex(answer["ir_hash"]), usedforsecurity=False).hexdigest()}


def other_header() -> str:
    """The header without comments, with other names of parameters and tags, and flags as enumerators."""
    text = re.sub(r"/\*.*?\*/", "", HEADER(), flags=re.DOTALL)
    text = re.sub(r"\b(struct )(tess\w+)", r"\1acme_\2_s", text)
    text = re.sub(r"\b(ctx|stream|mesh|bytes|kernel)(?=[,)])", r"\1_p", text)
    return re.sub(r"\bint(?= priority\b)", "signed int", text)


HEADER = adapter_abi.header

HEADERS = altered(
    "AMB-RT-100",
    "has a header with other tags, names of parameters and spellings of types",
    ("abi/header/*", "abi/constants/*", "abi/collective-functions/*"),
    ReferenceAdapter,
    (adapter_abi, "header", other_header),
    name="other_header",
)
