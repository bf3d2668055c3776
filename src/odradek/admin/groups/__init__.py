"""Consumer groups over the wire: state, members, committed offsets, lag, and plans of resets."""
