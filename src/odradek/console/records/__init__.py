"""Records of topics as the console handles them: read, decoded, masked, filtered. Pure."""
