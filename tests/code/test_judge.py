"""Tests the verdicts of judge.py and its exit code."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

JUDGE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "judge.py")


def judged(right, wrong, missed, *flags):
    """Returns the exit code for a tree with this many right, wrong and missing targets."""
    with tempfile.TemporaryDirectory() as folder:
        ours, oracle = os.path.join(folder, "ours.tsv"), os.path.join(folder, "oracle.jsonl")
        hows = ["local"] * (right + wrong) + ["-"] * missed
        with open(ours, "w") as out:
            for row, how in enumerate(hows):
                line = 1 if row < right else 100
                print("a.py", row, 0, "f", how, "a.py", line, "f", sep="\t", file=out)
        with open(oracle, "w") as out:
            for row in range(len(hows)):
                print(json.dumps(["a.py", row, 0, "f", [["a.py", 1, "function"]]]), file=out)
        return subprocess.run([sys.executable, JUDGE, ours, oracle, *flags], capture_output=True, text=True)


class Goals(unittest.TestCase):
    def test_a_tree_that_reaches_them(self):
        self.assertEqual(judged(990, 10, 100, "--recall", "0.85").returncode, 0)

    def test_too_many_that_are_wrong(self):
        done = judged(980, 20, 0, "--recall", "0.85")
        self.assertEqual(done.returncode, 1)
        self.assertIn("precision 0.9800 is below 0.985", done.stderr)

    def test_too_few_that_are_found(self):
        done = judged(840, 0, 160, "--recall", "0.85")
        self.assertEqual(done.returncode, 1)
        self.assertIn("recall 0.840 is below 0.85", done.stderr)
        self.assertEqual(judged(840, 0, 160, "--recall", "0.8").returncode, 0)

    def test_nothing_judged_is_nothing_reached(self):
        self.assertEqual(judged(0, 0, 0, "--recall", "0.85").returncode, 1)


if __name__ == "__main__":
    unittest.main()
