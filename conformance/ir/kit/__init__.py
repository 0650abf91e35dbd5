"""Support for the cases of chapter ir."""
