"""The connection to a cluster, over the wire protocol only."""
