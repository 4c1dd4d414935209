"""One quality interface, and the providers behind it (SPEC section 14)."""
