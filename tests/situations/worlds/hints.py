"""Defines the fields of a project and of its hints."""

from dataclasses import dataclass


@dataclass(frozen=True)
class World:
    fixture: dict
    hints: list


def command(name, cmd, tags="", reason=None, **more):
    return hint(name, {"type": "command", "cmd": cmd}, tags, reason, **more)


def note(name, text, tags="", reason=None, **more):
    return hint(name, text, tags, reason, **more)


def file(name, path, tags="", reason=None, **more):
    return hint(name, {"type": "path", "abs": path}, tags, reason, **more)


def hint(name, value, tags, reason, priority=None, scope=None, age_h=None, uses=None):
    """Makes a hint. `scope` replaces the project's repository as the scope."""
    return {
        "name": name,
        "value": value,
        "tags": tags.split(),
        "reason": reason,
        "priority": priority,
        "scope": scope,
        "age_h": age_h,
        "uses": uses,
    }


MACHINE = [
    note("git/signing", "commits are signed; the first of a day waits for the key to be touched", "commit gpg"),
    note("shell/tools", "rg, fd, jq and yq are installed; grep -R takes minutes here", "grep search"),
    note("host/ports", "4000 and 8000 belong to the print server of this machine", "port busy"),
    note("host/sudo", "sudo asks for a password, which an agent cannot give", "root permission"),
    command("docker/rootless", "systemctl --user start docker", "daemon socket", "docker is rootless here"),
    command("github/pr", "gh pr create --draft --fill", "pull request", "a bot picks the reviewers"),
]

# The hints of another machine.
LAPTOP = [
    note("git/identity", "below ~/customers the hook wants the customer's address in user.email", "commit author"),
    note("shell/fish", "the login shell is fish: what sets a variable goes through bash -c"),
    note(
        "host/proxy", "all that goes outside needs HTTPS_PROXY=http://proxy.corp.example:3128", "fix network download"
    ),
    note("host/disk", "/home is small and full; large output goes to /scratch", reason="quota of 20 GB"),
    command("docker/compose", "docker compose up -d", "fix docker-compose", "the old one with a hyphen is gone"),
    note("github/reviewers", "gh pr create -r platform; a draft is looked at by nobody"),
]
