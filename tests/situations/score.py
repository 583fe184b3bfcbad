"""Plays situations and prints how well Nudge chose its lines. README.md explains the figures."""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import floor
from judge import judge
from play import Play

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = ("situations.jsonl", "others.jsonl", "fresh.jsonl", "later.jsonl", "last.jsonl")
GROUPS = ("start", "prompt", "prompt, other words", "failure")
OWN_TIME_MS = 45


def main():
    options = arguments()
    played = {}
    for path in options.file or [os.path.join(HERE, name) for name in FILES]:
        rows = prepared(path, options)
        if not rows:
            continue
        began = time.monotonic()
        with ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(lambda row: one(row, options.as_is, options.model), rows))
        played[section(path, options)] = {"seconds": round(time.monotonic() - began, 1), "results": results}
    if not played:
        raise SystemExit("no situation fits")
    if options.json == "-":
        print(document(played))
    else:
        for name, part in played.items():
            show(name, part, options.verbose)
    if options.json and options.json != "-":
        with open(options.json, "w") as out:
            out.write(document(played))
    figures = {name: groups(part["results"]) for name, part in played.items()}
    if options.update:
        floor.update(figures)
    if options.check:
        sys.exit(floor.check(figures))


def arguments():
    parser = argparse.ArgumentParser(prog="tests/situations/run", description=__doc__)
    parser.add_argument("--file", action="append", help="other rows of the same form; may be given again")
    parser.add_argument("--only", default="", metavar="PREFIX", help="of the id or the category")
    parser.add_argument("--verbose", action="store_true", help="what was told in each, not only what was wrong")
    parser.add_argument("--json", metavar="FILE", help="the results too; `-` prints them alone")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="situations at a time (2)")
    parser.add_argument("--as-is", action="store_true", help=f"leave the hook the {OWN_TIME_MS} ms it gives itself")
    parser.add_argument(
        "--full-start",
        action="store_true",
        help="prompts and failures alone, with everything stored before the session began",
    )
    parser.add_argument("--crowd", action="store_true", help="30 more hints scoped to the repository")
    parser.add_argument("--seeded", action="store_true", help="the repository's own commands seeded, and learning on")
    parser.add_argument("--model", metavar="FOLDER", help="a model's folder, by which hints are found by meaning too")
    parser.add_argument("--check", action="store_true", help="exit 1 when a figure is worse than in floor.json")
    parser.add_argument("--update", action="store_true", help="write the figures to floor.json")
    options = parser.parse_args()
    if (options.check or options.update) and (options.only or options.as_is):
        parser.error("the floor is for whole files, without --only and --as-is")
    return options


def section(path, options):
    """Returns the name of these situations in the floor."""
    name = os.path.splitext(os.path.basename(path))[0]
    flags = {
        "--full-start": options.full_start,
        "--crowd": options.crowd,
        "--seeded": options.seeded,
        "--model": options.model,
    }
    return " ".join([name, *(flag for flag, is_on in flags.items() if is_on)])


def prepared(path, options):
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    rows = [row for row in rows if row["id"].startswith(options.only) or row["category"].startswith(options.only)]
    if options.crowd:
        with open(os.path.join(HERE, "notes.json")) as file:
            notes = json.load(file)
        for row in rows:
            row["store"] += [note_of(note, row["fixture"]["dir"]) for note in notes]
    for row in rows if options.seeded else []:
        # Without git there is no repository to seed.
        row["seeded"] = bool(row["fixture"].get("branch"))
    if options.full_start:
        rows = [row for row in rows if {"load": "early"} in row["history"]]
        for row in rows:
            row["history"] = [{"load": "rest"}, *[step for step in row["history"] if "load" not in step]]
            row["store"] = [{**hint, "early": False} for hint in row["store"]]
            row["full_start"] = True
    return rows


def note_of(note, folder):
    scope = {"cwd_glob": [f"**/{folder}/**"]}
    return {
        "id": "note:" + note["component"] + "/" + note["key"],
        "component": note["component"],
        "key": note["key"],
        "value": note["value"],
        "meta": {"tags": note["tags"], "scope": scope, "added_by": note["added_by"], "ttl": "session"},
        "age_h": note["age_h"],
        "uses": note["uses"],
    }


def one(row, as_is, model):
    try:
        play = Play(row, as_is, model)
        return judge(play, play.run())
    except Exception as error:
        raise SystemExit(f"{row['id']} could not be played: {error!r}") from error


def groups(results):
    """Returns the figures of each group, and of all groups together."""
    found = {name: [r for r in results if r["group"] == name] for name in GROUPS}
    return {name: figures(members) for name, members in found.items() if members} | {"all": figures(results)}


def figures(results):
    asked = [r for r in results if r["needed"]]
    told_bytes = sum(r["hint_bytes"] for r in results)
    return {
        "situations": len(results),
        "ok": sum(r["ok"] for r in results),
        "asked": len(asked),
        "told": sum(r["told"] for r in asked),
        "told_now": sum(r["told_now"] for r in asked),
        "irrelevant": sum(r["junk_bytes"] for r in results) / told_bytes if told_bytes else 0.0,
        "quiet": sum(r["quiet"] for r in results),
        "quiet_broken": sum(r["quiet_broken"] for r in results),
        "forbidden": sum(r["forbidden"] for r in results),
        "stale": sum(r["stale"] for r in results),
        "bytes": sum(r["bytes"] for r in results),
    }


def show(name, part, verbose):
    results = part["results"]
    print(f"\n{name}: {len(results)} situations, {part['seconds']} s")
    print(
        f"{'':28} {'n':>4} {'ok':>4} {'needed told':>13} {'at the event':>13} {'irrelevant':>11} "
        f"{'quiet broken':>13} {'forbidden':>10} {'stale unmarked':>15} {'bytes':>7}"
    )
    for head, found in groups(results).items():
        print_row(head, found)
        members = [r for r in results if r["group"] == head]
        for category in dict.fromkeys(r["category"] for r in members):
            print_row("  " + category, figures([r for r in members if r["category"] == category]))
    times = sorted(t for r in results for t in r["times"])
    p50, p95 = (times[min(len(times) - 1, int(len(times) * q))] for q in (0.5, 0.95))
    late = sum(t > OWN_TIME_MS for t in times)
    print(f"{len(times)} hooks: p50 {p50:.1f} ms, p95 {p95:.1f} ms, {late} over {OWN_TIME_MS} ms")
    for result in results:
        if verbose or not result["ok"]:
            noise = f"   [irrelevant: {', '.join(result['junk'])}]" if result["junk"] else ""
            print(f"{'ok  ' if result['ok'] else 'FAIL'} {result['id']:7} {'; '.join(result['wrong'])}{noise}")
        if verbose:
            print("      | " + result["text"].replace("\n", "\n      | "))


def print_row(head, found):
    told, now, quiet = (
        f"{found[part]}/{found[whole]}"
        for part, whole in (("told", "asked"), ("told_now", "asked"), ("quiet_broken", "quiet"))
    )
    print(
        f"{head:28} {found['situations']:4} {found['ok']:4} {told:>13} {now:>13} {found['irrelevant']:11.1%} "
        f"{quiet:>13} {found['forbidden']:10} {found['stale']:15} {found['bytes']:7}"
    )


def document(played):
    parts = {name: {**part, "groups": groups(part["results"])} for name, part in played.items()}
    return json.dumps(parts, ensure_ascii=False, indent=1)


if __name__ == "__main__":
    main()
