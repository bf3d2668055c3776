"""Three ways to run the same graph: micro-batches, real time, and once over a range."""
