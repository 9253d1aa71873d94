"""What runs came to: comparisons, exports, reports, accuracy costs, precomputed benchmarks. No torch."""
