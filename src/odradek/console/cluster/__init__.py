"""The only part of the console that talks to the cluster, with the client of the command line. Everything here blocks,
and runs on threads."""
