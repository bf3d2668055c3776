"""Where rows go: a module for each kind of target."""
