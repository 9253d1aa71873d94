"""What runs came to: comparisons, exports, reports, utility, precomputed benchmarks. No torch."""
