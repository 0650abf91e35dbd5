"""Raises an error whose text has no UTF-8 form."""

from echo import Echo


class SpeaksSurrogates(Echo):
    def language_execute(self, **params: object) -> dict:
        raise LookupError("half a pair: \ud800")
