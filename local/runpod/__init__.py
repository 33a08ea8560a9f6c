"""RunPod's REST v2 API on this machine: a twin built from its OpenAPI document and public reports.

Usable three ways: ``Simulator.handle`` without sockets, ``adapter.client_session`` behind ``requests``,
and ``python -m local.runpod --port N`` over HTTP. It imports nothing of the product.
"""

from local.in_process import DroppedError
from local.runpod.simulator import Simulator
from local.runpod.wire import Response

__all__ = ["DroppedError", "Response", "Simulator"]
