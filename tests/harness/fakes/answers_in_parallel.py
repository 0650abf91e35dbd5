"""Says that several processes of it may answer at the same time."""

from typing import Any

from echo import Echo


class Parallel(Echo):
    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "parallel": True}
