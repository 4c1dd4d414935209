"""The demo: the public airport register as a governed datasource."""
