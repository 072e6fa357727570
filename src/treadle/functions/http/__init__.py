"""The HTTP side of the functions service: each route parses, asks the engine, and answers."""
