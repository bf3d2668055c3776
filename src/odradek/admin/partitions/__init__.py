"""Moving replicas over the wire: plans, sizes, requests and throttles of reassignments."""
