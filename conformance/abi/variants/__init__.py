"""Legal variants of the binary interface."""
