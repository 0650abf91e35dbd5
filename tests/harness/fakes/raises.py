"""Has a bug of its own."""

from echo import Echo


class Raises(Echo):
    def language_execute(self, **params: object) -> dict:
        raise LookupError("no such register")
