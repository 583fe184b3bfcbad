"""Tests the runner of the situations without a nudge. Run it in this folder: `python3 -m unittest`."""

import contextlib
import io
import json
import os
import tempfile
import unittest

import floor
import fresh
import judge
import lines
import others
import score

HERE = os.path.dirname(os.path.abspath(__file__))
HINTS = {
    "dev": {"id": "dev", "component": "shop", "key": "deploy", "values": ["make deploy ENV=staging"], "meta": {}},
    "main": {"id": "main", "component": "shop", "key": "deploy", "values": ["make deploy ENV=prod"], "meta": {}},
    "note": {
        "id": "note",
        "component": "shop",
        "key": "note",
        "values": ["wait (3h, then go)"],
        "meta": {"reason": "the gate fails at noon"},
    },
}


def one(text):
    (line,) = lines.read(text, HINTS)
    return line


class Lines(unittest.TestCase):
    def test_ages_of_both_forms(self):
        ages = {
            "(set 3h ago by codex; worked 4x; why)": 3 / 24,
            "(set just now by user)": 0,
            "(set 7mo ago by user)": 210,
            "(3h, codex, 4x; why)": 3 / 24,
            "(now, user)": 0,
            "(45s, user)": 0,
            "(3m, user)": 0,
            "(2d)": 2,
            "(5w, codex)": 35,
            "(7mo, codex; why)": 210,
            "(2y; why)": 730,
            "(a note)": None,
            "": None,
        }
        for said, days in ages.items():
            assert lines.age_in_days(one(f"- shop/note: wait (3h, then go) {said}")) == days, said

    def test_variants_headings_and_names(self):
        text = (
            "Nudge: what changed since. Not instructions:\n"
            "- shop/deploy: make deploy ENV=prod (2d, codex)\n"
            "elsewhere:\n"
            "- shop/deploy: `make deploy ENV=staging` no longer applies here\n"
            "- shop/other: x\n"
            "- also here: shop/note, shop/gone (nudge_query lists them)"
        )
        read = [(line.hint, line.tells) for line in lines.read(text, HINTS)]
        assert read == [("main", True), ("dev", True), (None, True), ("note", False), (None, False)]

    def test_a_reason_marks_nothing(self):
        told = one("- shop/note: wait (3h, then go) (2d, codex; the gate fails at noon)")
        assert lines.DOUBT.search(told.said) is None
        failed = one("- shop/note: wait (3h, then go) (2d, codex, failed 3x; the gate fails at noon)")
        assert lines.DOUBT.search(failed.said) is not None

    def test_the_same_line_later(self):
        for before, later in (("(3h, codex)", "(4h, codex)"), ("(set 3h ago by x)", "(set 4h ago by x)")):
            assert lines.before_age(f"- a/b: c {before}") == lines.before_age(f"- a/b: c {later}")


class Rows(unittest.TestCase):
    def rows(self):
        for name in score.FILES:
            with open(os.path.join(HERE, name)) as file:
                yield from map(json.loads, file)

    def test_rows_name_what_they_hold(self):
        for row in self.rows():
            known = [hint["id"] for hint in row["store"]]
            assert len(known) == len(set(known)), row["id"]
            for check in ("needed", "forbidden", "marked", "unmarked", "retracted", "aged", "drift"):
                for hint in row.get(check, []):
                    assert hint in known, (row["id"], check)
            assert judge.group(row) in score.GROUPS

    def test_ids_are_unique(self):
        ids = [row["id"] for row in self.rows()]
        assert len(ids) == len(set(ids))

    def test_rows_are_what_their_scripts_make(self):
        for script in (others, fresh):
            with open(script.FILE) as file:
                assert file.read() == script.document(), script.FILE


class Floor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(setattr, floor, "FLOOR", floor.FLOOR)
        floor.FLOOR = os.path.join(folder.name, "floor.json")

    def check(self, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = floor.check(*arguments)
        return code, out.getvalue()

    # Promise (hints): The quality of suggestions stays above a floor in all recorded situations, and a fall is named.
    def test_a_failure_is_named(self):
        figures = {"situations": 9, "asked": 3, "told": 2, "irrelevant": 0.0333, "quiet": 2, "quiet_broken": 1}
        figures |= {"forbidden": 0, "stale": 0}
        with contextlib.redirect_stdout(io.StringIO()):
            floor.update({"x": {"all": figures}})
        assert self.check({"x": {"all": figures}})[0] == 0
        assert self.check({"x": {"all": figures | {"told": 3, "quiet_broken": 0}}})[0] == 0
        code, said = self.check({"x": {"all": figures | {"told": 1, "forbidden": 1}}})
        assert code == 1
        assert "x, all: needed told 66.6% -> 33.3%" in said
        assert "x, all: forbidden" in said
        assert self.check({"y": {"all": figures}})[0] == 1


if __name__ == "__main__":
    unittest.main()
