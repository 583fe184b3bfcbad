"""Compares the seeds of the packages in a folder with judged.tsv, and prints figures by file format."""

import collections
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
MOST_WRONG = 1 / 20


def main(seeds, folder, *flags):
    with open(HERE / "judged.tsv") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]
    judged = {tuple(row[:4]): row[4] for row in rows}
    lines = (HERE / "packages.txt").read_text().splitlines()
    packages = [line.split("==")[0] for line in lines if not line.startswith("#")]
    held_out = set(packages[next(at for at, line in enumerate(lines) if line.startswith("#")) :])
    counts = collections.defaultdict(collections.Counter)
    halves = {"held out": collections.Counter(), "others": collections.Counter()}
    new = []
    for package in packages:
        listed = subprocess.run([seeds, pathlib.Path(folder) / package], capture_output=True, text=True, check=True)
        for line in listed.stdout.splitlines():
            if line.startswith("passed over\t"):
                print(f"{package}: {line.split(chr(9), 1)[1]}", file=sys.stderr)
                continue
            place, key, command = line.split("\t")[:3]
            row = (package, place or ".", key, command)
            if row not in judged:
                new.append("\t".join(row))
            verdict = judged.get(row, "not judged")
            counts[key.split(".")[0]][verdict] += 1
            halves["held out" if package in held_out else "others"][verdict] += 1
    if "--new" in flags:
        print("\n".join(new))
        return 0
    total = collections.Counter()
    print(f"{'format':12} {'seeded':>7} {'useless':>8} {'wrong':>6}")
    for name in sorted(counts):
        show(name, counts[name])
        total += counts[name]
    show("all", total)
    shares = {name: (found["useless"] + found["wrong"]) / max(1, found.total()) for name, found in halves.items()}
    for name, share in shares.items():
        print(f"{name}: {halves[name].total()} seeded, useless or wrong {share:.1%} (at most {MOST_WRONG:.0%})")
    print(f"not judged: {len(new)}")
    return 1 if new or max(shares.values()) > MOST_WRONG else 0


def show(name, found):
    print(f"{name:12} {found.total():7} {found['useless']:8} {found['wrong']:6}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
