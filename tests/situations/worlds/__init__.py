"""Defines twenty-eight projects of kinds that situations.jsonl lacks, and the hints that agents have stored about each.

A component occurs in only one project, so a hint's name shows its project.
"""

from .crafts import ANVIL, MINNOW, TAPIR, TIDYFLORA
from .devices import BEACON, EMBERFALL, LUMEN, TRAILMIX
from .engines import COPPERWORKS, FURROW, SWITCHYARD
from .enterprise import MILLRACE, NIGHTJAR, NORDWIND, STEADING, WARDGATE
from .hints import LAPTOP as LAPTOP
from .hints import MACHINE as MACHINE
from .services import KASSE, LANDING, ORCHARD, PIGEONHOLE
from .studies import HARBOUR, QUILL, SPINDRIFT, TIDEWATER
from .web import FERNWEH, LINDEN, MINUTIER, SNIPBAR

# In this order, each project is the neighbour of the next one (others.py).
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

# The projects of fresh.py, in the same kind of order.
FRESH = [
    FERNWEH,
    STEADING,
    SNIPBAR,
    NIGHTJAR,
    ANVIL,
    LINDEN,
    SWITCHYARD,
    TIDYFLORA,
    MILLRACE,
    COPPERWORKS,
    NORDWIND,
    MINNOW,
    WARDGATE,
    TAPIR,
    MINUTIER,
    FURROW,
]
