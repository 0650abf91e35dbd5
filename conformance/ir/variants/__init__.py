"""Legal variants of the language: implementations that differ from the reference where they may."""
