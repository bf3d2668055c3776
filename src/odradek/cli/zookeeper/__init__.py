"""`odradek zookeeper`."""
