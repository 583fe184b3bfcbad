"""Makes the parts of situations from worlds/*.json: projects, stores, events and rows."""

import hashlib
import json
import os
import zlib
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
AGES_H = [0.3, 2, 5, 11, 20, 33, 80, 160, 400]
USES = [0, 1, 0, 4, 0, 2, 0]
WRITERS = ["agent:claude", "user", "agent:codex", "agent:claude", "agent:gemini", "agent:codex"]
# The numbers of hints in a store: hints of the project itself, of its two neighbours, and of the machine.
SIZES = {
    "small": (slice(9), slice(1, 5), slice(0), slice(4)),
    "middle": (slice(99), slice(1, 10), slice(2, 6), slice(6)),
    "large": (slice(99), slice(99), slice(99), slice(99)),
}
ORDER = [
    "heron",
    "slotwise",
    "moorbrand",
    "pg_tessera",
    "bevelkit",
    "tollgate",
    "gristmill",
    "postern",
    "IceFloe.jl",
    "vaultline",
    "larder",
    "zinslauf",
]


BLANK = {"tags": [], "reason": None, "priority": None, "scope": None, "age_h": None, "uses": None}


@dataclass(frozen=True)
class World:
    fixture: dict
    hints: list
    setting: "Setting" = field(repr=False, compare=False)


class Setting:
    """Several projects on one machine. `desk` has the hints of the machine itself."""

    def __init__(self, order, desk):
        self.worlds = [self.read(name) for name in order]
        self.desk = desk
        self.desk_names = [each["name"] for each in desk]
        self.known = {each["name"] for world in self.worlds for each in world.hints} | set(self.desk_names)
        # A hint of priority 8 without a scope is told everywhere, as intended.
        self.everywhere = [each["name"] for each in desk if each["priority"] == 8]

    def read(self, name):
        with open(os.path.join(HERE, "worlds", name + ".json")) as file:
            world = json.load(file)
        return World(world["fixture"], [BLANK | one for one in world["hints"]], self)


def hint(name, value, tags="", reason=None, priority=None):
    """Makes a hint that belongs to no project."""
    rest = {"scope": None, "age_h": None, "uses": None}
    return {"name": name, "value": value, "tags": tags.split(), "reason": reason, "priority": priority} | rest


DESK = [
    hint("host/memory", "16 GB and no swap: never more than six jobs at a time", "jobs memory", priority=8),
    hint("python/uv", "no pip here: uv venv and uv pip install", "fix pip", "externally-managed-environment"),
    hint(
        "docker/podman",
        {"type": "command", "cmd": "podman machine start"},
        "fix docker",
        "docker is an alias of podman",
    ),
    hint("shell/locale", "decimal commas: LC_ALL=C before sort, awk and printf", "sort awk"),
    hint("git/hooks", "pre-commit runs for a minute on each commit; --no-verify is caught later anyway", "commit"),
    hint("ssh/bastion", "hosts below .intern are reached with ssh -J bastion.intern", "ssh"),
    hint("gitlab/mr", {"type": "command", "cmd": "glab mr create --fill --draft"}, "merge review"),
    hint("host/clipboard", "kein xclip: was in die Zwischenablage soll, geht durch wl-copy"),
]
LATER = Setting(ORDER, DESK)
(
    HERON,
    SLOTWISE,
    MOORBRAND,
    TESSERA,
    BEVELKIT,
    TOLLGATE,
    GRISTMILL,
    POSTERN,
    ICEFLOE,
    VAULTLINE,
    LARDER,
    ZINSLAUF,
) = LATER.worlds


# The store of a situation


def stored(one, scope, identity=None):
    """Makes a hint in the form of a row. The hint's name decides the fields that the project leaves open, in the same
    way each time."""
    component, key = one["name"].split("/")
    chance = zlib.crc32(one["name"].encode())
    meta = {field: one[field] for field in ("tags", "reason", "priority") if one[field]}
    if scope:
        meta["scope"] = scope
    meta |= {"added_by": WRITERS[chance % len(WRITERS)], "ttl": "session"}
    row = {
        "id": identity or one["name"],
        "component": component,
        "key": key,
        "value": one["value"],
        "meta": meta,
        "age_h": one["age_h"] or (400 if one["priority"] else AGES_H[chance // 7 % len(AGES_H)]),
        "uses": USES[chance // 63 % len(USES)] if one["uses"] is None else one["uses"],
    }
    # A hint with a priority was stored long ago.
    return row | {"early": True} if one["priority"] else row


def repository(world):
    remote = world.fixture["remote"].removesuffix(".git")
    return {"repo": ["/".join(remote.replace(":", "/").split("/")[-2:])]}


def own_scope(world, one):
    """Gives a hint a scope. Most hints have a repository, two of eight a folder, and one of eight no scope."""
    chance = hashlib.sha256(one["name"].encode()).digest()[0] % 8
    if one["scope"]:
        return one["scope"]
    if chance == 0 and not one["priority"]:
        return None
    return {"cwd_glob": [f"**/{world.fixture['dir']}/**"]} if chance < 3 else repository(world)


def store_of(world, size="middle", own_unscoped=False):
    """Collects all hints of the project, some of two other projects, and some of the machine."""
    worlds = world.setting.worlds
    at = worlds.index(world)
    second, third = (worlds[(at + step) % len(worlds)] for step in (5, 8))
    own, neighbour, more, machine = SIZES[size]
    store = [stored(one, None if own_unscoped else own_scope(world, one)) for one in world.hints[own]]
    for number, one in enumerate(second.hints[neighbour]):
        forgotten = number % 3 == 0 and not one["priority"]
        store.append(stored(one, None if forgotten else own_scope(second, one)))
    store += [stored(one, own_scope(third, one) if one["priority"] else None) for one in third.hints[more]]
    return store + [stored(one, None) for one in world.setting.desk[machine]]


def early(store):
    """Changes the store: hints that are older than an hour exist before the session."""
    return [one | {"early": True} if one["age_h"] >= 1 else one for one in store]


def names(world):
    return [one["name"] for one in world.hints]


def at_home(world):
    """Returns the hints that are harmless in any session of the project."""
    return names(world) + world.setting.desk_names


# Events


def start(client="claude", session="s1", **more):
    return {"kind": "start", "client": client, "cwd": None, "session": session} | more


def prompt(text, client="claude", **more):
    return {"kind": "prompt", "client": client, "cwd": None, "session": "s1", "prompt": text} | more


def failed(command, error, code=1, client="claude", **more):
    event = {"kind": "fail", "client": client, "cwd": None, "session": "s1", "command": command}
    return event | {"error": f"Exit code {code}\n{error}".strip(), "code": code} | more


def as_a_rule(client, cwd=None):
    """Tells the conventions at the start, and stores all other hints while the session runs."""
    return [{"load": "early"}, {"event": start(client, cwd=cwd)}, {"load": "rest"}]


def situation(category, world, event, needed=(), allowed=(), forbidden=(), why="", history=None, store=None, **checks):
    if history is None:
        talked = event["kind"] in ("prompt", "fail")
        history = as_a_rule(event["client"], event["cwd"]) if talked else []
    store = store or store_of(world)
    if {"load": "early"} in history:
        store[0]["early"] = True
    allowed = [*allowed, *(name for name in world.setting.everywhere if name not in allowed)]
    held = {one["id"] for one in store}
    allowed = [name for name in allowed if name in held or name not in world.setting.known]  # A small store lacks some.
    row = {"category": category, "fixture": world.fixture, "store": store, "history": history, "event": event}
    row |= {"needed": list(needed), "allowed": allowed, "forbidden": list(forbidden), "why": why}
    return row | checks
