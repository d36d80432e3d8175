"""A stand-in for hashicorp/google 7.45.0: its schema and requests over Terraform's protocol."""
