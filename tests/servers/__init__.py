"""Real servers for the tests, started from binaries that come with packages and gone with the run."""
