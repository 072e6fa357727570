"""The benchmark: treadle, bare loops over the same drivers, and peers, in one run on one machine (`make bench`)."""
