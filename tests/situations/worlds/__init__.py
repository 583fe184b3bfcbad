"""Holds twenty-eight projects of kinds that situations.jsonl lacks, and the hints that agents have stored about each.

A component is only in one project, so a name shows the project of its hint."""

from .crafts import ANVIL, MINNOW, TAPIR, TIDYFLORA
from .devices import BEACON, EMBERFALL, LUMEN, TRAILMIX
from .engines import COPPERWORKS, FURROW, SWITCHYARD
from .enterprise import MILLRACE, NIGHTJAR, NORDWIND, STEADING, WARDGATE
from .hints import LAPTOP as LAPTOP
from .hints import MACHINE as MACHINE
from .services import KASSE, LANDING, ORCHARD, PIGEONHOLE
from .studies import HARBOUR, QUILL, SPINDRIFT, TIDEWATER
from .web import FERNWEH, LINDEN, MINUTIER, SNIPBAR

# Each world is the neighbour of the next one in this order (others.py).
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

# The worlds of fresh.py, in the same kind of order.
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
