"""Every accepted form of data, brought to one typed and ordered Arrow table."""
