"""A small agent: it looks up its build command, runs it, and tells the store how that went.

`python examples/python/agent.py`, once `pip install ./bindings/python` has been run.
"""

import subprocess

import nudge


def main() -> None:
    """Runs the story."""
    with nudge.Store() as store:
        store.set("api", "build", "echo building for everybody")
        store.set("api", "build", "echo building the dev branch", scope={"branch": "dev"})
        store.set("api", "test", "exit 3")

        for branch in ("main", "dev"):
            found = look_up(store, branch, "build")
            tell(branch, found)
            run(store, branch, found)
        for _ in range(3):
            run(store, "main", look_up(store, "main", "test"))
        tell("test", look_up(store, "main", "test"))
        uses = look_up(store, "dev", "build").hint.get("use_count", 0)
        print(f"build was used {uses} time{'' if uses == 1 else 's'} on dev")


def look_up(store: nudge.Store, branch: str, key: str) -> nudge.Match:
    """Returns the command for a branch."""
    found = store.get("api", key, {"branch": branch})
    if found is None:
        raise LookupError(f"nothing is known of {key}")
    return found


def tell(what: str, found: nudge.Match) -> None:
    """Prints the match and the reasons."""
    print(f"{what}: {found.text}\n  because {', '.join(found.reasons)}")


def run(store: nudge.Store, branch: str, found: nudge.Match) -> None:
    """Runs a hint's command. A hint is data: the agent decides to run it, not the store."""
    done = subprocess.run(["sh", "-c", found.text], stdout=subprocess.PIPE, text=True, check=False)
    for line in done.stdout.splitlines():
        print(f"  {line}")
    store.outcome(found.text, done.returncode == 0, exit_code=done.returncode, context={"branch": branch})


if __name__ == "__main__":
    main()
