"""No library: the least Python that does the same over the same driver. What a library can approach, not one."""
