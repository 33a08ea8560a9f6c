"""Nebula Serverless: Kubernetes Pods on rented GPUs, run by functions that sleep when nothing happens."""

__version__ = "0.1.0"
