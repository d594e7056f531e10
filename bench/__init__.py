"""Timings as ratios, all taken interleaved in one run."""
