"""Examples as data: folders with a pipeline, a simulator of its records and a live view, and their engines."""
