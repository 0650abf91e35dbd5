"""Legal variants of the runtime."""
