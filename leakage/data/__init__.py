"""Pictures, data sets, trained weights: what lies in files. No torch."""
