"""Shipped price lists: what is offered when a provider's own catalog cannot be read."""
