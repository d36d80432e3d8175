"""Google's APIs: requests, answers, refusals, credentials."""
