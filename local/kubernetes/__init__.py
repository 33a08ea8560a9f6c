"""A small faithful Kubernetes API server for one machine: the verbs that the product uses, and their rules.

Three ways in: ``Emulator.handle`` without sockets, ``adapter.client`` (the real client over it, still without
sockets) and ``python -m local.kubernetes --port N`` over HTTP. What is emulated and what is not is written in
``docs/kubernetes.md``; ``tests/contract/test_kubernetes_contract*.py`` also run against a real API server.
"""
