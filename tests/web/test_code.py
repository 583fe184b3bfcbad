"""Tests the code of a project on the page: folders, files, definitions, and callers."""

import json
import re
from pathlib import Path

from kit import Web, assert_fits_the_width, expect

FILES = {
    "auth.py": 'from auth_utils import verify\n\n\ndef login(user, password):\n    """Lets somebody in.\n\n    :param token: what they know\n    """\n    return verify(user, password)\n',
    "auth_utils.py": "def verify(user, password):\n    return user == password\n",
    "views.py": "from auth import login\n\n\ndef checkout(request):\n    return login(request.user, request.password)\n",
    "web/app.ts": "export function start(): void {}\n",
    "made.py": "# @generated\ndef made(): pass\n",
    "web/package.json": '{"name": "web"}\n',
}


class Code(Web):
    def setUp(self):
        super().setUp()
        self.write(FILES)

    def code_page(self, **options):
        return self.open_view("5", "code", **options)

    def test_files_definitions_and_what_was_left_out(self):
        page = self.code_page()
        names = page.locator("#view-code .explored [role=option] .name")
        expect(names).to_have_text(["web/", "auth.py", "auth_utils.py", "made.py", "views.py"])
        expect(page.locator("#view-code .stands")).to_contain_text("4 definitions in 6 files · python 3, typescript 1")
        expect(page.locator("#view-code .stands")).to_contain_text("All of it has been read")
        page.get_by_text("1 file left out").click()
        expect(page.locator(".skipped")).to_contain_text("1 written by a program")
        names.filter(has_text="web/").click()
        expect(names).to_have_text(["..", "app.ts", "package.json"])
        expect(page.locator("#view-code .explored [role=option] .facts").last).to_have_text("0 definitions")
        names.first.click()
        names.filter(has_text="views.py").click()
        node = page.locator("article.node")
        expect(node.get_by_role("heading", name="views.py")).to_be_visible()
        node.get_by_role("button", name="checkout").click()
        expect(node.get_by_role("heading", name="checkout")).to_be_visible()

    def test_a_definition_has_its_callers_and_calls_as_a_graph(self):
        page = self.code_page()
        page.keyboard.press("/")
        page.keyboard.type("login")
        # `checkout` calls it, so it is found too, as the second.
        found = page.locator("#view-code .explored [role=option]")
        expect(found).to_have_count(2)
        found.first.click()
        node = page.locator("article.node")
        expect(node.locator("pre").first).to_have_text("def login(user, password)")
        expect(node.locator(".problem").first).to_contain_text("Its doc documents the parameter `token`, which the signature lacks")
        expect(node.locator(".graph text")).to_have_text(["checkout", "login", "verify"])
        # The keyboard can open the link too.
        node.get_by_role("link", name=re.compile("verify")).focus()
        page.keyboard.press("Enter")
        expect(node.get_by_role("heading", name="verify")).to_be_visible()
        expect(node.locator(".graph text")).to_have_text(["login", "verify"])

    def test_what_is_written_meanwhile_is_there_by_itself(self):
        page = self.code_page()
        expect(page.locator("#count-code")).to_have_text("4")
        self.write({"more.py": "def more():\n    pass\n"})
        expect(page.locator("#count-code")).to_have_text("5")
        expect(page.locator("#view-code .explored .name").filter(has_text="more.py")).to_be_visible()

    def test_a_place_without_a_project_says_so(self):
        self.project = str(Path(self.home, "nothing"))
        Path(self.project).mkdir()
        self.env["PWD"] = self.project
        page = self.code_page()
        expect(page.locator("#view-code .stands")).to_contain_text("No code is known here.")

    def test_names_are_shown_as_text(self):
        evil = "<img src=x onerror=alert(1)>"
        self.write({f"{evil}.py": f'def f(a="{evil}"):\n    """{evil}"""\n'})
        page = self.code_page()
        page.locator("#view-code .explored .name").filter(has_text=evil).click()
        node = page.locator("article.node")
        expect(node.get_by_role("heading", name=evil)).to_be_visible()
        node.get_by_role("button", name="f", exact=True).click()
        expect(node.locator("pre").nth(1)).to_have_text(evil)
        self.assertEqual(page.locator("#view-code img").count(), 0)

    def test_it_fits_a_narrow_window(self):
        page = self.code_page(viewport={"width": 400, "height": 800})
        assert_fits_the_width(self, page)
        page.locator("#view-code .explored .name").filter(has_text="views.py").click()
        assert_fits_the_width(self, page)
        page.locator("article.node").get_by_role("button", name="‹ List").click()
        expect(page.locator("#view-code .explored .name").first).to_be_visible()
