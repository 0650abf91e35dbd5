"""An implementation whose device takes a quarter of a second for every program, whatever else the machine does."""

import time
from collections.abc import Mapping
from typing import Any

from echo_adapter import Echo

SECONDS = 0.25


class Waiting(Echo):
    """Echoes late."""

    def language_execute(self, **params: Any) -> Mapping[str, Any]:
        """The inputs, after a while."""
        time.sleep(SECONDS)
        return super().language_execute(**params)
