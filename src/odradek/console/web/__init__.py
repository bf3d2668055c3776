"""The web server's side of the console: safety before every page, templates, and the files that browsers load."""
