"""Reading records over connections of our own."""
