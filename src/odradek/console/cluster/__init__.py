"""The only part of the console that asks the cluster, through `odradek.admin`. Everything here blocks, and runs on
threads."""
