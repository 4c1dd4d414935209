"""CSV, read strictly and as declared. Source: SPEC section 3."""
