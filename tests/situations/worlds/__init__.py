"""Twelve projects of no kind that situations.jsonl has, and what agents have stored about each.

A component belongs to one project, so that a name says whose hint it is."""

from .devices import BEACON, EMBERFALL, LUMEN, TRAILMIX
from .hints import MACHINE as MACHINE
from .services import KASSE, LANDING, ORCHARD, PIGEONHOLE
from .studies import HARBOUR, QUILL, SPINDRIFT, TIDEWATER

# In this order each is the neighbour of the next: others.py.
WORLDS = [
    BEACON,
    TIDEWATER,
    LUMEN,
    LANDING,
    EMBERFALL,
    KASSE,
    PIGEONHOLE,
    SPINDRIFT,
    HARBOUR,
    TRAILMIX,
    ORCHARD,
    QUILL,
]
