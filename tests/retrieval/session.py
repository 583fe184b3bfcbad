"""A session of Nudge in folders of its own, asked over HTTP."""
import json
import os
import sqlite3
import subprocess
import tempfile
import time
import urllib.request


class Session:
    def __init__(self, nudge, model=None):
        self.folder = tempfile.TemporaryDirectory()
        home = self.folder.name
        folders = {f"XDG_{name}_HOME": f"{home}/{name.lower()}" for name in ("DATA", "CACHE", "CONFIG", "STATE")}
        self.data = folders["XDG_DATA_HOME"]
        env = {"PATH": os.environ["PATH"], "HOME": home, "NUDGE_RUNTIME_DIR": f"{home}/run", **folders}
        env |= {"NUDGE_PORT": "0", "NUDGE_RECORDS_ON": "1", "NUDGE_CODE": "0"} | ({"NUDGE_MODEL_DIR": model} if model else {})
        log = open(f"{home}/log", "w")
        self.server = subprocess.Popen([nudge, "serve"], env=env, cwd=home, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self.place = self.wait_for(f"{home}/run/server.pid")

    def wait_for(self, file):
        """Returns the place of the server, once it has written it."""
        while self.server.poll() is None:
            try:
                return json.loads(open(file).read())
            except (FileNotFoundError, json.JSONDecodeError):
                time.sleep(0.02)
        raise RuntimeError(open(f"{self.folder.name}/log").read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.terminate()
        self.server.wait()
        self.folder.cleanup()

    def call(self, method, **params):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.place['token']}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.place['port']}/", body, headers)
        with urllib.request.urlopen(request, timeout=600) as answer:
            said = json.load(answer)
        if "error" in said:
            raise RuntimeError(said["error"]["message"])
        return said["result"]

    def load(self, docs):
        """Imports documents as records. Returns the ids of the documents by the id of their record: documents of the same
        words are one record, and a document that the guard refuses is none."""
        day = "2026-01-01T00:00:00Z"
        row = lambda doc: {"project": doc["project"], "kind": "update", "title": doc["title"], "body": doc["body"], "status": "open", "created_at": day, "updated_at": day}
        with open(f"{self.folder.name}/import.json", "w") as file:
            json.dump({"format": "nudge-records/1", "records": [row(doc) for doc in docs]}, file)
        self.call("nudge.records.import", file=file.name)
        words = lambda *texts: "".join(c for c in " ".join(texts).lower() if c.isalnum())
        by_words = {}
        for doc in docs:
            by_words.setdefault(words(doc["project"], doc["title"], doc["body"]), []).append(doc["id"])
        with sqlite3.connect(f"file:{self.data}/nudge/records.db?mode=ro", uri=True) as db:
            rows = db.execute("SELECT r.id, p.name, r.title, r.body FROM record r JOIN project p ON p.id = r.project_id").fetchall()
        return {record: by_words.get(words(*texts), []) for record, *texts in rows}

    def wait_for_vectors(self):
        while self.call("nudge.status")["records"].get("without_meaning"):
            time.sleep(0.5)
