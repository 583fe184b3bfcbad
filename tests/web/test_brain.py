"""Tests the brain on the page: notes, their relations and faults, and the reasons why a question finds a note."""

import re
from pathlib import Path

from kit import Web, assert_fits_the_width, expect

FILES = {
    "brain.yaml": "brain: 1\n",
    "domains/coding/jitter.md": "---\nid: retry-jitter\ntitle: Retry with full jitter\ntype: pattern\ntags: [network]\nconfidence: 0.8\nrelated: [{id: idem, type: requires_understanding_of}]\n---\nSleep a random time. See [[Timeouts]] and [[Nowhere]].\n",
    "domains/coding/idem.md": "---\nid: idem\ntitle: Idempotent writes\n---\nA write that is sent twice must land once.\n",
    "domains/coding/timeouts.md": "# Timeouts\n\nEvery call has a deadline; see [jitter](jitter.md).\n",
}


class Brain(Web):
    def setUp(self):
        super().setUp()
        self.write(FILES)

    def brain_page(self, **options):
        return self.open_view("6", "brain", **options)

    def test_units_and_what_is_wrong_with_them(self):
        page = self.brain_page()
        names = page.locator("#view-brain .explored .name")
        expect(names).to_have_text(["Idempotent writes", "Retry with full jitter", "Timeouts"])
        expect(page.locator("#view-brain .stands")).to_contain_text("3 units, 3 relations in ")
        expect(page.locator("#count-brain")).to_have_text("3")
        page.get_by_text("1 problem").click()
        expect(page.locator("#view-brain .skipped")).to_contain_text("domains/coding/jitter.md leads to `Nowhere`")

    def test_a_unit_has_its_relations_and_backlinks_as_a_graph(self):
        page = self.brain_page()
        page.locator("#view-brain .explored .name").filter(has_text="Retry").click()
        unit = page.locator("#view-brain article.node")
        expect(unit.get_by_role("heading", name="Retry with full jitter")).to_be_visible()
        expect(unit.locator("pre")).to_contain_text("Sleep a random time.")
        # The note Timeouts has a link to this note, and this note has links to both other notes.
        expect(unit.locator(".graph text")).to_have_text(["Timeouts", "Retry with full jitter", "Idempotent writes", "Timeouts"])
        # The keyboard can open the link too.
        unit.get_by_role("link", name=re.compile("Idempotent writes: requires understanding of")).focus()
        page.keyboard.press("Enter")
        expect(unit.get_by_role("heading", name="Idempotent writes")).to_be_visible()
        expect(unit.locator(".graph text")).to_have_text(["Retry with full jitter", "Idempotent writes"])

    def test_a_question_finds_units_and_says_why(self):
        page = self.brain_page()
        page.keyboard.press("/")
        page.keyboard.type("sleep before a retry")
        rows = page.locator("#view-brain .explored [role=option]")
        expect(rows.first).to_contain_text("Retry with full jitter")
        expect(rows.first).to_contain_text(re.compile(r"relevance 0\.\d\d, holds 2 of 2 words: sleep, retry \(stems 0\.\d\d"))
        expect(rows.filter(has_text="Idempotent writes")).to_contain_text("requires understanding of, by retry-jitter")
        page.keyboard.press("Escape")
        expect(rows).to_have_count(3)

    def test_what_is_written_meanwhile_is_there_by_itself(self):
        page = self.brain_page()
        expect(page.locator("#count-brain")).to_have_text("3")
        self.write({"more.md": "# More\n"})
        expect(page.locator("#count-brain")).to_have_text("4")

    def test_a_place_without_a_brain_says_so(self):
        Path(self.home, "shop", "brain.yaml").unlink()
        page = self.brain_page()
        expect(page.locator("#view-brain .stands")).to_contain_text("No brain is known here. There is no brain: nudge brain init".replace("nudge brain init", "`nudge brain init"))

    def test_notes_are_shown_as_text(self):
        evil = "<img src=x onerror=alert(1)>"
        self.write({"evil.md": f"---\ntitle: '{evil}'\ntype: '{evil}'\ntags: ['{evil}']\n---\n{evil}\n[[Timeouts]]\n"})
        page = self.brain_page()
        page.locator("#view-brain .explored .name").filter(has_text=evil).click()
        unit = page.locator("#view-brain article.node")
        expect(unit.get_by_role("heading", name=evil)).to_be_visible()
        expect(unit.locator("pre")).to_contain_text(evil)
        self.assertEqual(page.locator("#view-brain img").count(), 0)

    def test_it_fits_a_narrow_window(self):
        page = self.brain_page(viewport={"width": 400, "height": 800})
        assert_fits_the_width(self, page)
        page.locator("#view-brain .explored .name").filter(has_text="Retry").click()
        assert_fits_the_width(self, page)
        page.locator("#view-brain article.node").get_by_role("button", name="‹ List").click()
        expect(page.locator("#view-brain .explored .name").first).to_be_visible()
