"""`odradek console`: a web page over any Kafka cluster, which it reaches over the wire only.

`cluster` alone asks the cluster, through `admin`. `views` turns what it returns into what a template shows, and is
pure. `pages` has one file for each section. `web.safety` stands before all of them.
"""
