"""Reads public evaluation sets from folders: documents, and questions with the documents that answer them.

Each reader takes the folder that has the clones, and returns documents and questions. A document is a dict with `id`,
`title`, `body` and `project`. A question has `text`, `type`, `wanted` (ids of documents) and `project` (None: all).
"""
import json
import os
import random
import re
from pathlib import Path

HERE = os.path.dirname(os.path.realpath(__file__))
LANGUAGES = "en de es ro ru el tr vi th ar hi zh".split()
# The clone that a set needs, by the name of its folder. All are on GitHub.
CLONES = {
    "locomo-turns": ["snap-research/LoCoMo"],
    "locomo-facts": ["snap-research/LoCoMo"],
    "locomo-sessions": ["snap-research/LoCoMo"],
    "madial-en": ["hejunqing/MADial-Bench"],
    "madial-zh": ["hejunqing/MADial-Bench"],
    "cosqa": ["microsoft/CodeXGLUE"],
    "eslint": ["eslint/eslint"],
    "runbooks": ["prometheus-operator/runbooks", "prometheus-operator/kube-prometheus"],
    "xquad": ["google-deepmind/xquad"],
    "xlang": ["google-deepmind/xquad"],
    "records-a": [],
    "records-b": [],
}


def read_set(name, folder):
    """Returns the documents and the questions of a set."""
    reader, *args = {
        "locomo-turns": (locomo, "turns"),
        "locomo-facts": (locomo, "facts"),
        "locomo-sessions": (locomo, "sessions"),
        "madial-en": (madial, "en", "en"),
        "madial-zh": (madial, "zh", "ch"),
        "cosqa": (cosqa,),
        "eslint": (eslint,),
        "runbooks": (runbooks,),
        "xquad": (xquad, True),
        "xlang": (xquad, False),
        "records-a": (own_records, "a"),
        "records-b": (own_records, "b"),
    }[name]
    docs, questions = reader(Path(folder), *args)
    ids = {doc["id"] for doc in docs}
    return docs, [question for question in questions if question["wanted"] and question["wanted"] <= ids]


def one_line(text, most):
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


def without_front(text):
    return re.sub(r"^---.*?^---\s*", "", text, flags=re.S | re.M)


def own_records(_, name):
    rows = lambda file: [json.loads(line) for line in open(f"{HERE}/../records/set-{name}/{file}.jsonl")]
    docs = [dict(id=row["id"], title=row["title"], body=row["body"], project=row["project"]) for row in rows("records")]
    ask = lambda row: dict(text=row["query"], type=row["group"], wanted=set(row["wanted"]), project=None)
    return docs, [ask(row) for row in rows("questions")]


def locomo(folder, kind):
    docs, questions = [], []
    for talk in json.loads((folder / "LoCoMo/data/locomo10.json").read_text()):
        name, said = talk["sample_id"], talk["conversation"]
        turns, facts_of = set(), {}
        for key in said:
            session = re.fullmatch(r"session_(\d+)", key)
            if not session:
                continue
            day, lines = said[key + "_date_time"], []
            for turn in said[key]:
                image = f" [shares an image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                turns.add(turn["dia_id"])
                lines.append(f"**{turn['speaker']}**: {turn['text']}{image}")
                if kind == "turns":
                    title = f"{turn['speaker']}, {day.split(' on ')[-1]}"
                    docs.append(dict(id=f"{name}/{turn['dia_id']}", title=title, body=turn["text"] + image, project=name))
            if kind == "sessions":
                title = f"{said['speaker_a']} and {said['speaker_b']}, {day}"
                docs.append(dict(id=f"{name}/S{session[1]}", title=title, body="\n\n".join(lines), project=name))
        facts = 0
        for key, by in talk["observation"].items():
            day = said[f"session_{re.search(r'session_([0-9]+)_', key)[1]}_date_time"]
            for text, turn in (row for rows in by.values() for row in rows):
                facts += 1
                for each in turn if isinstance(turn, list) else re.findall(r"D\d+:\d+", str(turn)):
                    facts_of.setdefault(each, []).append(f"{name}/O{facts}")
                if kind == "facts":
                    docs.append(dict(id=f"{name}/O{facts}", title=one_line(text, 290), body=f"Said on {day}.", project=name))
        kinds = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
        for row in talk["qa"]:
            places = (place[1:].split(":") for each in row.get("evidence") or [] for place in re.findall(r"D\d+:\d+", str(each)))
            evidence = {f"D{int(session)}:{int(turn)}" for session, turn in places} & turns
            wanted = {
                "turns": {f"{name}/{turn}" for turn in evidence},
                "facts": {fact for turn in evidence for fact in facts_of.get(turn, [])},
                "sessions": {f"{name}/S{turn[1:].split(':')[0]}" for turn in evidence},
            }[kind]
            questions.append(dict(text=row["question"], type=kinds[row["category"]], wanted=wanted, project=name))
    return docs, questions


def madial(folder, language, sub):
    docs, questions = [], []
    for line in (folder / f"MADial-Bench/data/{sub}/MADial-Bench-{language}-memory.json").read_text().splitlines():
        for key, memory in json.loads(line).items() if line.strip() else []:
            body = f"{memory['time']}. {memory['scene']}. {memory['emotion']}."
            docs.append(dict(id=key, title=one_line(memory["event"], 290), body=body, project="memories"))
    clean = lambda turn: re.sub(r'^<[^>]*>:\s*"?|"$', "", turn)
    ids = {doc["id"] for doc in docs}
    for line in (folder / f"MADial-Bench/data/{sub}/MADial-Bench-{language}-dialogue.json").read_text().splitlines():
        if not line.strip():
            continue
        row = json.loads(line)
        before = [turn.strip() for turn in row["dialogue"]][: row["test-turn"][0]]
        before = [turn for turn in before if not turn.startswith("<BOD")]
        last = [clean(turn) for turn in before if not turn.startswith("<Assistant")][-1:]
        wanted = {str(each) for each in row["relevant-id"]} & ids
        questions.append(dict(text=" ".join(map(clean, before)), type="whole dialogue", wanted=wanted, project=None))
        questions += [dict(text=text, type="last turn", wanted=wanted, project=None) for text in last]
    return docs, questions


def cosqa(folder):
    base = folder / "CodeXGLUE/Text-Code/NL-code-search-WebQuery"
    rows = json.loads((base / "CoSQA/cosqa-dev.json").read_text()) + json.loads((base / "data/test_webquery.json").read_text())
    ids, docs, wanted = {}, [], {}
    for row in rows:
        if row["code"] not in ids:
            ids[row["code"]] = f"c{len(ids)}"
            name = re.search(r"def (\w+)", row["code"])
            docs.append(dict(id=ids[row["code"]], title=name[1] if name else "code", body=row["code"], project="code"))
        if row.get("label") == 1:
            wanted.setdefault(row["doc"], set()).add(ids[row["code"]])
    return docs, [dict(text=text, type="web query", wanted=ids, project=None) for text, ids in wanted.items()]


def eslint(folder):
    docs, questions = [], []
    for page in sorted((folder / "eslint/docs/src/rules").glob("*.md")):
        rule, code = page.stem, folder / f"eslint/lib/rules/{page.stem}.js"
        if not code.exists():
            continue
        code = code.read_text()
        what = re.search(r'description:\s*"(.+?)"', code)
        body = (what[1] + ".\n\n" if what else "") + without_front(page.read_text())[:30_000]
        docs.append(dict(id=rule, title=rule, body=body, project="eslint"))
        block = re.search(r"messages:\s*\{(.*?)\n\t*\s*\},?\n", code, re.S)
        for message in re.findall(r':\s*\n?\s*"((?:[^"\\]|\\.)+)"', block[1] if block else "")[:3]:
            values = iter(["foo", "bar", "3", "baz", "5", "x", "y"])
            message = re.sub(r"\{\{\s*\w+\s*\}\}", lambda _: next(values, "z"), message).replace('\\"', '"')
            if len(message.split()) >= 4:
                questions.append(dict(text=message, type="message", wanted={rule}, project=None))
    return docs, questions


def runbooks(folder):
    docs, questions, seen = [], [], set()
    for page in sorted((folder / "runbooks/content/runbooks").rglob("*.md")):
        body = re.sub(r"^# .*$", "", without_front(page.read_text()), count=1, flags=re.M).strip()
        if page.stem != "_index" and len(body) >= 80:
            docs.append(dict(id=page.stem, title=page.stem, body=body, project=page.parent.name))
    ids = {doc["id"].lower(): doc["id"] for doc in docs}
    for rules in sorted((folder / "kube-prometheus/manifests").glob("*prometheusRule.yaml")):
        for block in re.split(r"\n\s*- alert: ", rules.read_text())[1:]:
            name = block.split("\n", 1)[0].strip()
            for kind in ("description", "summary"):
                text = re.search(rf"^\s*{kind}: (.+)$", block, re.M)
                text = text[1].strip().strip("'\"").replace("''", "'") if text else "|"
                text = re.sub(r"\{\{[^}]*\}\}", "demo", re.sub(r"\{\{[^}]*humanize[^}]*\}\}", "3", text))
                if name.lower() in ids and text not in ("|-", "|", ">-") and (name, text) not in seen:
                    seen.add((name, text))
                    questions.append(dict(text=text, type=kind, wanted={ids[name.lower()]}, project=None))
    return docs, questions


def xquad(folder, is_within):
    """Asks within each language, or (`is_within` false) in each language for paragraphs in English."""
    docs, questions = [], []
    for language in LANGUAGES:
        asked = []
        for number, article in enumerate(json.loads((folder / f"xquad/xquad.{language}.json").read_text())["data"]):
            for part, paragraph in enumerate(article["paragraphs"]):
                place, title = f"{number}.{part}", article["title"].replace("_", " ")
                if is_within or language == "en":
                    docs.append(dict(id=f"{language}/{place}", title=title, body=paragraph["context"], project=language))
                asked += [(row["id"], row["question"], place) for row in paragraph["qas"]]
        for _, text, place in random.Random(7).sample(sorted(asked), 200 if is_within else 50):
            to = language if is_within else "en"
            questions.append(dict(text=text, type=language, wanted={f"{to}/{place}"}, project=to))
    return docs, questions
