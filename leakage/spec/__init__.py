"""What can be asked for, as plain data. No torch."""
