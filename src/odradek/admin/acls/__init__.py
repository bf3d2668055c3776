"""Access control lists over the wire: rules, requests, and the decision that a broker would make."""
