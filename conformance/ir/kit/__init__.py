"""What the cases of chapter ir share."""
