"""Support for the cases of chapter runtime."""
