"""What a template shows, made from what the cluster has answered. Pure."""
