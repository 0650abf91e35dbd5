"""Legal variants of the collectives."""
