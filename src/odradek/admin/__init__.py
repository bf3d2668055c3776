"""Everything that asks a cluster over the wire, for every face. Prints nothing; knows no command line and no page."""
