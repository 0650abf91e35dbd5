"""The four states of a capability (section 1.3)."""

__all__ = ["STATES"]

STATES = ("enforced", "recorded", "diagnosed", "unsupported")
