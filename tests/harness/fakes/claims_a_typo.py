"""Claims a feature under a name that does not exist."""

from echo import Echo


class ClaimsATypo(Echo):
    def hello(self) -> dict:
        return {**super().hello(), "capabilities": {"extra_dtypes": "enforced"}}
