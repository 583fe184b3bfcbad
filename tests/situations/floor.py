"""Compares figures with the floor: floor.json has the values that must not get worse."""

import json
import math
import os

FLOOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "floor.json")
# name -> (function from a group's figures to the value, whether more is better)
RATIOS = {
    "needed told": (lambda f: ratio(f["told"], f["asked"], 1.0), True),
    "irrelevant bytes": (lambda f: f["irrelevant"], False),
    "quiet broken": (lambda f: ratio(f["quiet_broken"], f["quiet"], 0.0), False),
    "forbidden": (lambda f: ratio(f["forbidden"], f["situations"], 0.0), False),
    "stale unmarked": (lambda f: ratio(f["stale"], f["situations"], 0.0), False),
}


def ratio(part, whole, of_none):
    return part / whole if whole else of_none


def rounded(value, more_is_better):
    """Rounds to three decimals, in the direction in which the same figures still pass."""
    return (math.floor if more_is_better else math.ceil)(round(value * 1000, 6)) / 1000


def ratios(found):
    return {name: rounded(of(found), better) for name, (of, better) in RATIOS.items()}


def read():
    if not os.path.exists(FLOOR):
        return {}
    with open(FLOOR) as file:
        return json.load(file)


def update(figures):
    """Writes new values of the floor. Sections that were not played stay."""
    document = read() | {section: {g: ratios(f) for g, f in found.items()} for section, found in figures.items()}
    with open(FLOOR, "w") as out:
        json.dump(dict(sorted(document.items())), out, indent=1)
        out.write("\n")
    print(f"\nwritten: {', '.join(figures)}")


def check(figures):
    """Prints the figures that are below the floor; returns the exit code."""
    document, worse = read(), []
    for section, found in figures.items():
        if section not in document:
            worse.append(f"{section}: has no floor; write one with --update")
        for group, least in document.get(section, {}).items():
            now = ratios(found[group]) if group in found else {}
            for name, (_, more_is_better) in RATIOS.items():
                if name not in now:
                    worse.append(f"{section}, {group}: {name} was not measured")
                elif (now[name] < least[name]) if more_is_better else (now[name] > least[name]):
                    worse.append(f"{section}, {group}: {name} {least[name]:.1%} -> {now[name]:.1%}")
    print("\nfloor: " + ("kept" if not worse else "\n  ".join(["broken", *worse])))
    return 1 if worse else 0
