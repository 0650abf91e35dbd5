"""Legal variants of an endpoint."""
