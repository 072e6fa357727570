"""Background jobs that start on a file and grow to a cluster by changing one URL."""
