"""Reads the SQL of a definition: one SELECT over named tables at a time, with the position of each name."""
