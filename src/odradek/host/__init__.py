"""All that is not determined by the input: clock, disk, network, randomness and threads.
Everything else reaches them through these Protocols, so that a whole cluster can run on a simulated host."""
