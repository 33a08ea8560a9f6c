"""Load, decide, apply: one module per thing that the control plane does."""
