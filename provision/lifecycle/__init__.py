"""The life of a deployment: plan, apply, adopt, sweep, remove, and who may change it."""
