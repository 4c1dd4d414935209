"""The providers that come with the package. Each imports its framework only while it runs."""
