"""Twenty-eight projects of no kind that situations.jsonl has, and what agents have stored about each.

A component belongs to one project, so that a name says whose hint it is."""

from .crafts import ANVIL, MINNOW, TAPIR, TIDYFLORA
from .devices import BEACON, EMBERFALL, LUMEN, TRAILMIX
from .engines import COPPERWORKS, FURROW, SWITCHYARD
from .enterprise import MILLRACE, NIGHTJAR, NORDWIND, STEADING, WARDGATE
from .hints import LAPTOP as LAPTOP
from .hints import MACHINE as MACHINE
from .services import KASSE, LANDING, ORCHARD, PIGEONHOLE
from .studies import HARBOUR, QUILL, SPINDRIFT, TIDEWATER
from .web import FERNWEH, LINDEN, MINUTIER, SNIPBAR

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

# The same of fresh.py.
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
