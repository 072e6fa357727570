"""The benchmark of the functions service: enqueueing over HTTP, calls of an HTTP function, and memory."""
