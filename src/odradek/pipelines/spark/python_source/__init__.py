"""Topics for Spark without Kafka's jars: a data source in Python, on librdkafka, with Spark's columns and options.

`offsets` and `options` are the rules; `lookup`, `reading` and `writing` talk to brokers; `source` is what Spark calls.
"""
