"""Plans a pipeline without Spark: what is a stream, which steps keep state, and how the graph is split into queries."""
