"""Writers of rows, one module for each kind of target."""
