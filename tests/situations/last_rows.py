"""Defines the projects of the last situations and the machine that they share."""

from later_rows import Setting, hint

DESK = [
    hint("host/cores", "eight cores, and others work here too: never more than -j4", "jobs", priority=8),
    hint("python/pipx", "no pip outside a venv: pipx for programs", "fix pip", "externally-managed-environment"),
    hint("docker/group", "fix: permission denied on the Docker daemon socket: newgrp docker", "fix docker"),
    hint("git/signing", "commits are signed with the SSH key; if the agent is empty: ssh-add ~/.ssh/id_work", "commit"),
    hint("github/draft", {"type": "command", "cmd": "gh pr create --fill --draft"}, "review"),
    hint("impression/couloir", "l'imprimante du couloir : lp -d hp-flur -o sides=two-sided-long-edge", "print"),
    hint("search/fd", "find takes minutes below /data, fd and rg leave it out", "find grep"),
    hint("backup/nachts", "nachts um zwei läuft das Backup, dann ist die Platte langsam"),
]
LAST = Setting(["wrenbus", "lichen-ui", "fenmap", "snailnet", "reedseq", "tremolant", "askdesk"], DESK)
WRENBUS, LICHEN, FENMAP, SNAILNET, REEDSEQ, TREMOLANT, ASKDESK = LAST.worlds
