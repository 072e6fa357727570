"""Pure values and rules: nothing here reads a clock, does I/O or waits."""
