"""Checks of the security of a cluster: the checklist of docs/security.md, over the Kafka protocol and connections."""
