"""`odradek console`: a web page over any Kafka cluster, which it reaches over the wire only.

`cluster` alone talks to the cluster. `views` turns what it returns into what a template shows, and is pure. `pages` has
one file per page. `safety` stands before all of them.
"""
