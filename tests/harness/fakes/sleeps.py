"""Never comes back from a call."""

import time

from echo import Echo


class Sleeps(Echo):
    def language_execute(self, **params: object) -> dict:
        time.sleep(3600)
        return {}
