"""How a situation is put together: its store, its events, its row."""

import zlib

from . import MACHINE, WORLDS

AGES_H = [0.2, 1.5, 4, 9, 22, 30, 70, 150, 300]
USES = [0, 0, 1, 2, 0, 5, 0, 3]
WRITERS = ["agent:claude", "agent:codex", "user", "agent:gemini", "agent:claude", "agent:codex"]
MACHINE_NAMES = [hint["name"] for hint in MACHINE]


# The store of a situation


def stored(hint, scope, identity=None):
    """A hint as a row holds it; what the world leaves open is chosen by its name, each time the same."""
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
    """By repository or, every third, by folder: agents do both."""
    if hint["scope"]:
        return hint["scope"]
    if zlib.crc32(hint["name"].encode()) % 3 == 0:
        return {"cwd_glob": [f"**/{world.fixture['dir']}/**"]}
    remote = world.fixture["remote"].removesuffix(".git")
    return {"repo": ["/".join(remote.replace(":", "/").split("/")[-2:])]}


def store_of(world, small=False, own_unscoped=False):
    """All that is stored about the project, and about as much without a scope: of another, and of the machine."""
    at = WORLDS.index(world)
    unscoped, scoped, more = (WORLDS[(at + step) % len(WORLDS)] for step in (1, 2, 3))
    own = world.hints[:6] if small else world.hints
    store = [stored(hint, None if own_unscoped else own_scope(world, hint)) for hint in own]
    store += [stored(hint, None) for hint in unscoped.hints[1 : 5 if small else 12]]
    store += [stored(hint, own_scope(scoped, hint)) for hint in scoped.hints[: 2 if small else 6]]
    if not small:
        store += [stored(hint, None) for hint in more.hints[2:5]]
    return store + [stored(hint, None) for hint in MACHINE[: 3 if small else 6]]


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


def as_a_rule(client):
    """The conventions are there at the start; all else is stored while the session runs."""
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
