"""One way to write figures and to read addresses and client settings, for commands, console and pipelines. Pure."""
