"""The values that templates show, made from the answers of the cluster. Pure."""
