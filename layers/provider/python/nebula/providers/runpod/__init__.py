"""RunPod through its REST v2 API (api.runpod.io/v2): on-demand GPU and CPU pods."""

from nebula.providers.runpod.provider import RunPodProvider, build

__all__ = ["RunPodProvider", "build"]
