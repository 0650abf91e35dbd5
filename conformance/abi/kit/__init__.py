"""What the cases of chapter abi share."""
