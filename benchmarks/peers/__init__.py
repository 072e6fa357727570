"""One file a peer: how its library connects, enqueues, tells what is left, and runs a worker. Each has its own environment."""
