"""Nebula Serverless: Kubernetes Pods on rented GPUs, run by functions that sleep when nothing happens.

The garbage collector is told here, before anything large is imported, to look for cycles more seldom: a function's
process loads some hundred thousand objects that live as long as it does, and with Python's own setting a tenth of a
cold start goes into looking through them. What is in no cycle is freed at once as ever.
"""

import gc

__version__ = "0.1.0"

#: New objects, less those that were freed, between two looks; Python's own is 700 to 2,000.
OBJECTS_BETWEEN_LOOKS = 100_000

gc.set_threshold(OBJECTS_BETWEEN_LOOKS, *gc.get_threshold()[1:])
