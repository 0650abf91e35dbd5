"""Implementations that break one clause each, of chapter runtime."""
