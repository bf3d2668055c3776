"""The simulator: entities whose signals become records, declared in `simulator.yml`."""
