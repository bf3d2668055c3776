"""What an operator watches: gauges of the broker's state, readiness, and a small HTTP server for them."""
