"""Ways of handing events over to somebody outside, and the file that names who."""
