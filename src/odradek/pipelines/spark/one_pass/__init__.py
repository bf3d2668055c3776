"""A graph without state as columns of one frame, so that a stream is read, parsed and planned once for all outputs."""
