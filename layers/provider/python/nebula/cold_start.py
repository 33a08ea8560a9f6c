"""Imported by every function before anything large: until the function is built, garbage is looked for seldom.

A cold start makes some 150,000 objects that live as long as the process. With Python's own setting it looks through
them for cycles 57 times, for a fourteenth of its processor time. A warm function does better with that setting: what
it drops is found while it is still near. What is in no cycle is freed at once either way.
"""

import gc

#: New objects, less those that were freed, between two looks: more than a start makes. Python's own is 700 to 2,000.
OBJECTS_BETWEEN_LOOKS = 500_000
_PYTHONS_OWN = gc.get_threshold()

gc.set_threshold(OBJECTS_BETWEEN_LOOKS, *_PYTHONS_OWN[1:])


def over() -> None:
    """The function is built: give Python's own setting back."""
    gc.set_threshold(*_PYTHONS_OWN)
