"""What validation costs, measured against hand-written limits and plain Pandera on one machine."""
