"""Reading records over connections of our own, with limits, in ranges or as a member of a group."""
