"""What runs: it knows stores only by the protocols of `treadle.core.store`."""
