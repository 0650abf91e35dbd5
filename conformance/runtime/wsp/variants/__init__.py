"""Legal variants of the WSP runtime."""
