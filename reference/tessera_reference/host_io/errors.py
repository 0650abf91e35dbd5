"""Why a request is refused, or failed: the vocabulary of `error_code` (D4; AMB-HIO-10)."""

from __future__ import annotations

from enum import StrEnum


class ErrorCode(StrEnum):
    """The causes; a cause has the same code each time."""

    INVALID_MESSAGE = "INVALID_MESSAGE"
    """A member is missing, mistyped, out of range or unknown, or does not agree with another."""
    DUPLICATE_REQUEST = "DUPLICATE_REQUEST"
    """A request with the same ids is not answered yet."""
    QUEUE_FULL = "QUEUE_FULL"
    """The endpoint's queue of unanswered requests is full."""
    UNKNOWN_DEVICE = "UNKNOWN_DEVICE"
    """The endpoint has no such target device."""
    UNKNOWN_PLACE = "UNKNOWN_PLACE"
    """No device has such a SIP, cube and PE."""
    ADDRESS_OUT_OF_RANGE = "ADDRESS_OUT_OF_RANGE"
    """The bytes are not within one memory of the PE, or not within the one that was named."""
    UNKNOWN_KERNEL = "UNKNOWN_KERNEL"
    """No kernel of that name is built in, or in the binary."""
    KERNEL_NOT_DEPLOYED = "KERNEL_NOT_DEPLOYED"
    """Nothing was written where the binary should be."""
    ARGUMENT_MISMATCH = "ARGUMENT_MISMATCH"
    """The arguments are not those that the kernel takes."""
    UNSUPPORTED = "UNSUPPORTED"
    """The message is sound, but the endpoint has not what it asks for."""
    PE_FAULT = "PE_FAULT"
    """A PE failed while it worked."""


LONGEST_REASON = 300
"""Characters of a message, since it may quote the request."""


class RequestFailed(Exception):
    """A request that is answered with `ok` false: the code, what is wrong, the member at fault and its clause."""

    def __init__(self, code: ErrorCode, reason: str, field: str = "", clause: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.field = field
        self.clause = clause

    @property
    def message(self) -> str:
        """The text of `error_message`: the member, what is wrong, and the clause."""
        field, clause = f"{self.field}: " if self.field else "", f" ({self.clause})" if self.clause else ""
        return f"{field}{self.reason:.{LONGEST_REASON}}{clause}"


class InvalidFrame(Exception):
    """A frame in which no ids can be read, so that no response can answer it (AMB-HIO-19)."""
