"""The operator's command: ``python -m cli``."""
