"""The simulated provider: shipped, rents nothing."""

from nebula.providers.simulated.build import build
from nebula.providers.simulated.machines import Behaviour
from nebula.providers.simulated.provider import DEFAULT_CAPABILITIES, SimulatedProvider
from nebula.providers.simulated.script import Call, Script

__all__ = ["DEFAULT_CAPABILITIES", "Behaviour", "Call", "Script", "SimulatedProvider", "build"]
