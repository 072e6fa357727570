"""The `treadle` command: the composition root, which opens stores and puts faces together (L1)."""
