"""Client telemetry (KIP-714): which metrics clients are asked for, and the values that they push.

Pure rules and bounded state without I/O; `client_telemetry` owns it, `handlers` translate requests.
"""
