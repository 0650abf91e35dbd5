"""Support for the cases of chapter collectives."""
