"""Google's APIs: requests, responses, refusals, credentials."""
