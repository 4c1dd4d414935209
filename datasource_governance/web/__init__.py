"""The governed webserver: the Dagster UI behind sign-in, roles and an allow-list."""
