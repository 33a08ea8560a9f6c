"""The whole stack on one machine: simulators over HTTP, the worker, the demo."""
