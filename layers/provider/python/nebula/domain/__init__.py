"""Frozen value objects shared by every other package; nothing here does I/O."""
