"""Compiles a stateless graph to the columns of one frame, so that a stream is read, parsed and planned once."""
