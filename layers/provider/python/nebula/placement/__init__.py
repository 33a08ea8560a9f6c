"""Placement, pure: data and a clock go in, a decision with every reason comes out (docs/placement.md)."""
