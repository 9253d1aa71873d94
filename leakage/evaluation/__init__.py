"""Everything that may hold the truth: the play, the referee, scores, baselines, line-ups, verdicts."""
