"""Shared by the cases of chapter collectives."""
