"""The helpers that the cases of chapter abi share."""
