"""Everything that asks a cluster over the wire."""
