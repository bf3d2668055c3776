"""Dead letters: what their headers say, and which of them were written back to their source topics. Pure."""
