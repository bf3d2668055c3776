"""What every command is built on: commands with examples, options, parameter types, output, failures."""
