"""Tables and queries of databases. Source: SPEC section 3."""
