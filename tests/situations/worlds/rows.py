"""Makes the parts of a situation: its store, its events and its row."""

import zlib

from . import FRESH, LAPTOP, MACHINE, WORLDS

AGES_H = [0.2, 1.5, 4, 9, 22, 30, 70, 150, 300]
USES = [0, 0, 1, 2, 0, 5, 0, 3]
WRITERS = ["agent:claude", "agent:codex", "user", "agent:gemini", "agent:claude", "agent:codex"]
MACHINE_NAMES = [hint["name"] for hint in MACHINE]
# The numbers of hints in a store: hints of the project itself, of its three neighbours, and of the machine.
SIZES = {
    "small": (slice(6), slice(1, 5), slice(2), slice(0), slice(3)),
    "middle": (slice(99), slice(1, 12), slice(6), slice(2, 5), slice(6)),
    "large": (slice(99), slice(1, 99), slice(9), slice(1, 10), slice(6)),
}


# The store of a situation


def stored(hint, scope, identity=None):
    """Makes a hint in the form of a row. The hint's name decides the fields that the project leaves open, in the same
    way each time."""
    component, key = hint["name"].split("/")
    chance = zlib.crc32(hint["name"].encode())
    meta = {}
    if hint["tags"]:
        meta["tags"] = hint["tags"]
    if hint["reason"]:
        meta["reason"] = hint["reason"]
    if hint["priority"]:
        meta["priority"] = hint["priority"]
    if scope:
        meta["scope"] = scope
    meta |= {"added_by": WRITERS[chance % len(WRITERS)], "ttl": "session"}
    return {
        "id": identity or hint["name"],
        "component": component,
        "key": key,
        "value": hint["value"],
        "meta": meta,
        "age_h": hint["age_h"] or AGES_H[chance // 7 % len(AGES_H)],
        "uses": USES[chance // 63 % len(USES)] if hint["uses"] is None else hint["uses"],
    }


def own_scope(world, hint):
    """Gives a hint a scope: every third hint has a folder, and the others have a repository, since agents do both."""
    if hint["scope"]:
        return hint["scope"]
    if zlib.crc32(hint["name"].encode()) % 3 == 0:
        return {"cwd_glob": [f"**/{world.fixture['dir']}/**"]}
    remote = world.fixture["remote"].removesuffix(".git")
    return {"repo": ["/".join(remote.replace(":", "/").split("/")[-2:])]}


def store_of(world, size="middle", own_unscoped=False):
    """Collects all hints of the project, and about as many others without a scope: of other projects, and of the
    machine."""
    worlds, machine = (FRESH, LAPTOP) if world in FRESH else (WORLDS, MACHINE)
    at = worlds.index(world)
    unscoped, scoped, more = (worlds[(at + step) % len(worlds)] for step in (1, 2, 3))
    own, first, second, third, last = SIZES[size]
    store = [stored(hint, None if own_unscoped else own_scope(world, hint)) for hint in world.hints[own]]
    store += [stored(hint, None) for hint in unscoped.hints[first]]
    store += [stored(hint, own_scope(scoped, hint)) for hint in scoped.hints[second]]
    store += [stored(hint, None) for hint in more.hints[third]]
    return store + [stored(hint, None) for hint in machine[last]]


def names(world):
    return [hint["name"] for hint in world.hints]


# Events


def start(client="claude", session="s1", **more):
    return {"kind": "start", "client": client, "cwd": None, "session": session} | more


def prompt(text, client="claude", **more):
    return {"kind": "prompt", "client": client, "cwd": None, "session": "s1", "prompt": text} | more


def failed(command, error, code=1, client="claude", **more):
    event = {"kind": "fail", "client": client, "cwd": None, "session": "s1", "command": command}
    return event | {"error": f"Exit code {code}\n{error}".strip(), "code": code} | more


def early(store):
    """Changes the store: hints that are older than an hour exist before the session."""
    return [hint | {"early": True} if hint["age_h"] >= 1 else hint for hint in store]


def as_a_rule(client):
    """Tells the conventions at the start, and stores all other hints while the session runs."""
    return [{"load": "early"}, {"event": start(client)}, {"load": "rest"}]


def situation(category, world, event, needed=(), allowed=(), forbidden=(), why="", history=None, store=None, **checks):
    if history is None:
        history = as_a_rule(event["client"]) if event["kind"] in ("prompt", "fail") else []
    store = store or store_of(world)
    if {"load": "early"} in history:
        store[0]["early"] = True
    row = {"category": category, "fixture": world.fixture, "store": store, "history": history, "event": event}
    row |= {"needed": list(needed), "allowed": list(allowed), "forbidden": list(forbidden), "why": why}
    return row | checks
