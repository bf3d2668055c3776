"""What every face and the pipelines share: failures, figures, client properties, addresses and private files.

One owner for each way to read or write such a value, so that two faces cannot disagree.
"""
