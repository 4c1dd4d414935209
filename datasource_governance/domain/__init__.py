"""What is decided: pure values and functions, without clock, I/O or framework."""
