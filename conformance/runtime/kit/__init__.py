"""What the cases of chapter runtime share."""
