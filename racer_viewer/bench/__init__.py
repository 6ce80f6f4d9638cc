"""Benchmarks: one module per subject of `racer-viewer bench`, all measured against a baseline in the same run."""
