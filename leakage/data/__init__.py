"""Files: pictures, data sets and trained weights. No torch."""
