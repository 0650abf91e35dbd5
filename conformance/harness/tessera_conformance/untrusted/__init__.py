"""What comes from others: documents to be read, and text to be shown."""
