"""The results of runs: comparisons, exports, reports, accuracy costs, precomputed benchmarks. No torch."""
