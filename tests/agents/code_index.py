"""Tests code in the real Claude Code: the model gets the code that a prompt names, and the callers that an edit has
left unchanged."""

import json

from case import Case
from programs import Claude, read_by_model, read_since_call, wait_for

FILES = {
    "auth.py": """from auth_utils import verify


def login(user, password):
    \"\"\"Lets somebody in.

    :param user: who it is
    :param password: what they know
    \"\"\"
    return verify(user, password)
""",
    "auth_utils.py": """def verify(user, password):
    return user == password
""",
    "payment.py": """def process_payment(amount, currency):
    return amount, currency
""",
    "views.py": """from auth import login
from payment import process_payment


def checkout(request):
    login(request.user, request.password)
    return process_payment(request.amount, "EUR")
""",
    "tests/test_payment.py": """from payment import process_payment


def test_a_payment_has_a_currency():
    assert process_payment(1, "EUR") == (1, "EUR")
""",
}
TESTS = "mcp__nudge__nudge_code_tests"


class Code(Case):
    def setUp(self) -> None:
        super().setUp()
        for name, text in FILES.items():
            file = self.home.shop / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        self.home.allow("Read", "Edit")
        self.home.nudge("init", "--yes")
        self.claude = self.start(Claude)
        self.claude.wait_for_server()

    def read(self) -> None:
        """Waits until Nudge has read the code, as in a long session."""
        status = lambda: json.loads(self.home.nudge("code", "status", "--json"))
        wait_for("the code", lambda: status()["as_of"]["complete"] or None)

    def test_what_a_failing_function_calls_is_there_with_the_question(self) -> None:
        self.claude.asked("hello there")
        self.read()
        (request,) = self.claude.asked("why is `login()` failing?")
        told = "\n".join(read_by_model(request))
        self.assertIn("auth.py:4 login(user, password)", told)
        self.assertIn("calls verify(user, password) in auth_utils.py:1", told)
        self.assertIn("called by 1 (views.py:6)", told)
        (request,) = self.claude.asked("say hello, and nothing else please")
        self.assertEqual("\n".join(read_by_model(request)).count("auth.py:4"), 1, "once")

    def test_the_tests_of_what_was_changed_are_known(self) -> None:
        payment = str(self.home.shop / "payment.py")
        edit = {"file_path": payment, "old_string": "return amount, currency", "new_string": "return (amount, currency)"}
        self.claude.asked("hello there", ("Read", {"file_path": payment}), ("Edit", edit))
        self.read()
        (request,) = self.claude.asked("which tests are there for process_payment()?")
        self.assertIn("tests: tests/test_payment.py::test_a_payment_has_a_currency", "\n".join(read_by_model(request)))
        _, answered = self.claude.asked("and how do I run them?", (TESTS, {"id": "process_payment"}))
        self.assertIn("pytest tests/test_payment.py::test_a_payment_has_a_currency", read_since_call(answered))

    def test_an_edit_that_leaves_callers_and_words_behind_is_told_of(self) -> None:
        self.claude.asked("hello there")
        self.read()
        auth = str(self.home.shop / "auth.py")
        edit = {"file_path": auth, "old_string": "def login(user, password):", "new_string": "def login(user, token):"}
        *_, after = self.claude.asked("use a token", ("Read", {"file_path": auth}), ("Edit", edit))
        told = "\n".join(read_by_model(after))
        self.assertIn("the signature has changed, and 1 caller was written for the old one: views.py:6", told)
        self.assertIn("its doc is outdated now", told)
        self.assertIn("password", told)
