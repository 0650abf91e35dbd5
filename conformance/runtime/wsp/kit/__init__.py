"""Support for the cases of the WSP runtime."""
