"""A smoke test on Google itself, with real money; rehearsed against the simulated cloud."""
