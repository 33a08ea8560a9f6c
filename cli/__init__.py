"""The operator's command: ``nebula``."""
