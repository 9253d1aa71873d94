"""The page Ask: a question in plain words, the attacks that try it, and the answer."""
