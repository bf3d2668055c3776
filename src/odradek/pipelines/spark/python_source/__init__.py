"""A Spark data source for topics in Python, on librdkafka: no jars, and the columns and options of Spark's connector.

`offsets` and `options` are pure; `lookup`, `reading` and `writing` talk to brokers; `source` implements Spark's API.
"""
