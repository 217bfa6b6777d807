"""What `make bench` runs: ratios measured side by side in one run."""
