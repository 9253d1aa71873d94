"""The page Ask: a question in plain words, its attacks, and what may be answered."""
