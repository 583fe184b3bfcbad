"""Tests records on the page: search, reading, changes, merging."""

import json
import re
import unittest
from pathlib import Path

import test_hostile
from kit import assert_fits_the_width, expect
from recorded import MODEL, Records, detail, names, rows
from test_hostile import TEXTS, VALUES
from test_living import CONTRAST


class Reading(Records):
    def test_none_yet_says_what_to_do(self):
        page = self.records_page()
        expect(page.locator(".found")).to_contain_text("No record yet.")
        expect(page.locator(".found")).to_contain_text("nudge records add")
        self.assertFalse(Path(self.home, "data/nudge/records.db").exists(), "a look makes none")

    def test_a_list_is_narrowed_and_follows_changes(self):
        self.save("Uploads are refused", "client_max_body_size", "issue")
        self.save("Cache by key", "", "arch", status="resolved")
        self.save("Old plan", "", "spec", status="archived")
        self.save("Other fix", "", "issue", project="acme/docs")
        page = self.records_page()
        expect(names(page)).to_have_text(["Other fix", "Old plan", "Cache by key", "Uploads are refused"])
        expect(page.locator("#count-records")).to_have_text("4")
        pick = lambda name, value: page.locator(f"#view-records select[name={name}]").select_option(value)
        pick("kind", "issue")
        expect(names(page)).to_have_text(["Other fix", "Uploads are refused"])
        pick("project", "minerva/shop")
        expect(names(page)).to_have_text(["Uploads are refused"])
        pick("status", "archived")
        expect(page.locator(".found")).to_have_text("No record is like that.")
        pick("kind", "")
        expect(names(page)).to_have_text(["Old plan"])
        pick("status", "")
        # A new record appears without a reload, even if the command line has made it.
        self.nudge("records", "add", "--kind", "update", "--title", "Come by itself")
        expect(names(page)).to_have_text(["Come by itself", "Old plan", "Cache by key", "Uploads are refused"])
        expect(page.locator("#count-records")).to_have_text("5")

    def test_a_list_goes_on(self):
        for n in range(103):
            self.save(f"Record {n}")
        page = self.records_page()
        expect(page.locator(".found")).to_contain_text("103 records · the newest 100 are shown")
        page.get_by_role("button", name="More", exact=True).click()
        expect(rows(page)).to_have_count(103)
        expect(page.get_by_role("button", name="More", exact=True)).to_be_hidden()
        # A change keeps the scroll position.
        self.save("Record 103")
        expect(names(page).first).to_have_text("Record 103")
        self.assertGreaterEqual(rows(page).count(), 103)

    def test_a_search_says_how_it_was_made_and_why_each_was_found(self):
        self.save("Uploads over 1 MiB answer 413", "nginx refuses them; client_max_body_size 20m")
        self.save("Cache by key", "uploads are cached too", "arch")
        self.save("Uploads of the docs fail", "413 again", project="acme/docs")
        page = self.records_page()
        page.keyboard.press("/")
        expect(page.get_by_label("Search records")).to_be_focused()
        page.keyboard.type("uploads with 413")
        expect(page.locator(".found .mode")).to_contain_text("found by words alone")
        if not MODEL:
            expect(page.locator(".found .mode")).to_contain_text("no embedding model: nudge model add")
        expect(rows(page).first).to_contain_text(re.compile(r"relevance 0\.\d\d, holds \d of \d words: .*413"))
        rows(page).first.click()
        expect(detail(page).get_by_role("heading", name=re.compile("^Relevance"))).to_be_visible()
        # The parts add up to the relevance.
        relevance = float(re.search(r"Relevance ([\d.]+)", detail(page).inner_text())[1])
        parts = [float(text) for text in detail(page).locator(".score td.number").all_inner_texts()]
        self.assertGreater(len(parts), 1)
        self.assertAlmostEqual(min(1, sum(parts)), relevance, delta=0.03)
        # A search in a project marks the records of other projects.
        page.locator("#view-records select[name=project]").select_option("minerva/shop")
        away = page.get_by_role("group", name="In other projects").get_by_role("option")
        expect(away).to_have_text([re.compile("Uploads of the docs fail.*elsewhere")])
        expect(page.get_by_role("group", name="In this project").get_by_role("option").first).to_contain_text("1 MiB")
        page.get_by_label("Search records").fill("zebra crossing")
        expect(page.locator(".found")).to_contain_text("No record is like that.")
        page.get_by_label("Search records").press("Escape")
        expect(rows(page)).to_have_count(2)

    def test_what_it_said_before_is_read_and_comes_back(self):
        one = self.save("First words", "first body", "spec")
        self.call("nudge.records.upsert", id=one, title="Second words", body="second body", status="resolved")
        page = self.records_page()
        rows(page).click()
        expect(detail(page)).to_contain_text("number")
        expect(detail(page)).to_contain_text(f"{one}, version 2")
        page.get_by_text("version 1, replaced").click()
        expect(detail(page).locator("details pre")).to_have_text("first body")
        # A change elsewhere leaves an open record open.
        self.nudge("set", "api", "build", "make")
        expect(page.locator("#count-hints")).to_have_text("1")
        expect(detail(page).locator("details pre")).to_be_visible()
        page.get_by_role("button", name="Make it this again").click()
        expect(detail(page).locator("h2.title")).to_have_text("First words")
        self.assertEqual(self.record(one)["status"], "open")
        page.get_by_role("button", name="Undo").click()
        expect(detail(page).locator("h2.title")).to_have_text("Second words")
        self.assertEqual((self.record(one)["version"], self.record(one)["body"]), (4, "second body"))

    def test_an_export_is_what_an_import_reads(self):
        one = self.save("Uploads are refused", "line\r\nline \u202e", "issue")
        self.save("Other fix", "", "issue", project="acme/docs")
        page = self.records_page()
        page.locator("#view-records select[name=project]").select_option("minerva/shop")
        with page.expect_download() as download:
            page.get_by_role("button", name="Export").click()
        self.assertEqual(download.value.suggested_filename, "nudge-records.json")
        file = Path(self.home, "out.json")
        download.value.save_as(file)
        exported = json.loads(file.read_text())
        self.assertEqual([record["title"] for record in exported["records"]], ["Uploads are refused"])
        expect(page.locator("#toast")).to_contain_text("Exported 1 record")
        self.assertEqual(json.loads(self.nudge("records", "import", str(file), "--json"))["skipped"], 1)
        self.assertEqual(self.record(one)["body"], exported["records"][0]["body"])


class Writing(Records):
    def test_a_record_is_made_changed_deleted_and_brought_back(self):
        page = self.records_page()
        page.keyboard.press("n")
        expect(page.get_by_label("Title, one line")).to_be_focused()
        page.get_by_role("button", name="Store", exact=True).click()
        expect(detail(page).locator(".problem")).to_have_text("Give a title.")
        page.get_by_label("Title, one line").fill("Uploads are refused")
        page.get_by_label("What happened, why, and how it was solved").fill("nginx\nhas a limit")
        detail(page).locator("[name=kind]").select_option("issue")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator("#toast")).to_contain_text("Saved as record 1.")
        made = self.record(1)
        self.assertEqual((made["project"], made["origin"], made["body"]), ("minerva/shop", "web", "nginx\nhas a limit"))
        expect(detail(page).locator("h2.title")).to_have_text("Uploads are refused")
        page.keyboard.press("e")
        detail(page).locator("[name=status]").select_option("resolved")
        page.get_by_label("What happened, why, and how it was solved").press("Control+Enter")
        expect(page.locator("#toast")).to_contain_text("Stored record 1, version 2.")
        self.assertEqual(self.record(1)["status"], "resolved")
        detail(page).get_by_role("button", name="Delete", exact=True).click()
        expect(page.locator("#toast")).to_contain_text("Deleted record 1.")
        expect(rows(page)).to_have_count(0)
        self.assertTrue(self.gone(1))
        page.get_by_role("button", name="Undo").click()
        expect(names(page)).to_have_text(["Uploads are refused"])
        self.assertEqual(self.record(1)["status"], "resolved")

    def test_a_project_is_not_begun_by_a_slip(self):
        self.save("One", project="acme/shop")
        page = self.records_page()
        page.get_by_role("button", name="New record").click()
        page.get_by_label("Title, one line").fill("Two")
        detail(page).locator("[name=project]").fill("acme/shpo")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(detail(page).locator(".problem")).to_contain_text("There is acme/shop.")
        self.assertEqual(len(self.call("nudge.records.projects")["projects"]), 1)
        page.get_by_role("button", name="Begin this project").click()
        expect(page.locator("#toast")).to_contain_text("Saved as record 2.")
        self.assertEqual(self.record(2)["project"], "acme/shpo")

    def test_a_credential_is_refused_and_not_repeated(self):
        token = "".join(["ghp", "_", "aB3dE6gH9j" * 3, "aB3dE6"])
        page = self.records_page()
        page.keyboard.press("n")
        page.get_by_label("Title, one line").fill("The token")
        page.get_by_label("What happened, why, and how it was solved").fill(f"use {token}")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(detail(page).locator(".problem")).to_contain_text("credential")
        self.assertNotIn(token, detail(page).locator(".problem").inner_text())
        self.assertEqual(self.call("nudge.records.projects")["projects"], [])

    def test_what_somebody_else_changed_is_shown_beside_and_not_overwritten(self):
        one = self.save("As it was", "old body")
        page = self.records_page()
        rows(page).click()
        page.keyboard.press("e")
        page.get_by_label("What happened, why, and how it was solved").fill("my body")
        self.call("nudge.records.upsert", id=one, title="As theirs", body="their body")
        expect(names(page)).to_have_text(["As theirs"])
        page.get_by_role("button", name="Store", exact=True).click()
        problem = detail(page).locator(".problem")
        expect(problem).to_contain_text("Somebody changed it meanwhile. Nothing is stored yet.")
        expect(problem.locator("section").first).to_contain_text("their body")
        expect(problem.locator("section").last).to_contain_text("my body")
        self.assertEqual((self.record(one)["version"], self.record(one)["body"]), (2, "their body"))
        # The record changes again before the person decides. The page shows this.
        self.call("nudge.records.upsert", id=one, body="their last body")
        page.get_by_role("button", name="Store mine over it").click()
        expect(problem.locator("section").first).to_contain_text("their last body")
        self.assertEqual(self.record(one)["version"], 3)
        page.get_by_role("button", name="Store mine over it").click()
        expect(page.locator("#toast")).to_contain_text("version 4")
        self.assertEqual((self.record(one)["title"], self.record(one)["body"]), ("As it was", "my body"))
        page.get_by_role("button", name="Undo").click()
        expect(detail(page).locator("h2.title")).to_have_text("As theirs")
        page.keyboard.press("e")
        self.call("nudge.records.upsert", id=one, body="newest")
        page.get_by_label("What happened, why, and how it was solved").fill("mine again")
        page.get_by_role("button", name="Store", exact=True).click()
        page.get_by_role("button", name="Take what is stored").click()
        expect(page.get_by_label("What happened, why, and how it was solved")).to_have_value("newest")
        page.keyboard.press("Escape")
        self.assertEqual(self.record(one)["body"], "newest")

    def test_what_somebody_else_deleted_comes_back_on_request(self):
        one = self.save("As it was", "old body")
        page = self.records_page()
        rows(page).click()
        page.keyboard.press("e")
        page.get_by_label("Title, one line").fill("As mine")
        self.nudge("records", "rm", str(one))
        expect(rows(page)).to_have_count(0)
        page.get_by_role("button", name="Store", exact=True).click()
        expect(detail(page).locator(".problem")).to_contain_text("Somebody deleted it meanwhile.")
        self.assertTrue(self.gone(one))
        page.get_by_role("button", name="Bring it back, and store mine").click()
        expect(names(page)).to_have_text(["As mine"])
        self.assertEqual(self.record(one)["body"], "old body")

    def test_two_records_side_by_side_become_one_and_two_again(self):
        one, two = self.save("Uploads fail", "nginx"), self.save("Uploads are refused", "a limit")
        page = self.records_page()
        rows(page).filter(has_text="Uploads fail").click()
        page.get_by_role("button", name="Compare").click()
        sides = detail(page).locator(".compared section")
        expect(sides).to_have_text([re.compile("Uploads fail.*nginx"), re.compile("Uploads are refused.*a limit")])
        # If a record changes meanwhile, the page shows the change before it merges the records.
        self.call("nudge.records.upsert", id=two, body="another limit")
        page.get_by_role("button", name=f"Keep {one}, add {two} to it").click()
        expect(page.locator("#toast")).to_contain_text("look at both again")
        expect(sides.last).to_contain_text("another limit")
        page.get_by_role("button", name=f"Keep {one}, add {two} to it").click()
        expect(page.locator("#toast")).to_contain_text(f"Merged {two} into {one}.")
        expect(names(page)).to_have_text(["Uploads fail"])
        self.assertEqual(self.record(one)["body"], "nginx\n\nUploads are refused\n\nanother limit")
        page.get_by_role("button", name="Undo").click()
        expect(rows(page)).to_have_count(2)
        self.assertEqual((self.record(one)["body"], self.record(two)["body"]), ("nginx", "another limit"))

    def test_without_a_model_duplicates_say_so(self):
        self.save("Uploads fail")
        page = self.records_page()
        page.get_by_role("button", name="Duplicates").click()
        expect(page.locator(".found")).to_contain_text("there is no embedding model; `nudge model add` gets one.")
        page.get_by_role("button", name="Duplicates").click()
        expect(names(page)).to_have_text(["Uploads fail"])


@unittest.skipUnless(MODEL, "duplicates are told by a model: NUDGE_TEST_MODEL_DIR names the folder of one")
class Meaning(Records):
    def setUp(self):
        super().setUp()
        self.nudge("model", "add", MODEL, "--yes")

    def test_duplicates_side_by_side_and_merged(self):
        hostile = TEXTS["image"]
        first = self.save(f"Uploads larger than 1 MiB are refused {hostile}"[:290], "nginx answers 413")
        second = self.save(f"Uploads bigger than 1 MiB get refused {hostile}"[:290], "nginx answers 413")
        self.save("The cache is keyed by tenant", "", "arch")
        page = self.records_page()
        page.get_by_role("button", name="Duplicates").click()
        expect(rows(page)).to_have_count(1)
        expect(page.locator(".found")).to_contain_text("1 pair")
        expect(rows(page)).to_contain_text("apart")
        page.keyboard.press("j")
        sides = detail(page).locator(".compared section")
        expect(sides).to_have_count(2)
        test_hostile.Texts.assert_harmless(self, page)
        page.get_by_role("button", name=f"Keep {second}, add {first} to it").click()
        expect(page.locator(".found")).to_contain_text("No two records")
        self.assertIn("nginx answers 413\n\nUploads larger", self.record(second)["body"])
        page.keyboard.press("u")
        expect(rows(page)).to_have_count(1)

    def test_a_search_goes_by_meaning(self):
        self.save("Uploads larger than 1 MiB are refused", "nginx answers 413")
        page = self.records_page()
        page.get_by_label("Search records").fill("sending big files to the server does not work")
        expect(page.locator(".found .mode")).to_contain_text("by meaning")
        expect(names(page)).to_have_text(["Uploads larger than 1 MiB are refused"])
        rows(page).click()
        expect(detail(page).locator(".score")).to_contain_text("its meaning")

    def test_what_is_nearly_the_same_is_asked_about(self):
        one = self.save("Uploads larger than 1 MiB are refused", "nginx answers 413")
        # The model has made the vectors of the records.
        page = self.records_page()
        page.get_by_label("Search records").fill("uploads")
        expect(page.locator(".found .mode")).to_contain_text("by meaning")
        page.keyboard.press("Escape")
        for answer, title in (("It is another matter: store it", "Uploads larger than 1 MiB get refused"),
                              (f"Change {one} to this", "All uploads larger than 1 MiB are refused")):
            page.get_by_role("button", name="New record").click()
            page.get_by_label("Title, one line").fill(title)
            page.get_by_label("What happened, why, and how it was solved").fill("nginx answers 413")
            page.get_by_role("button", name="Store", exact=True).click()
            expect(detail(page).locator(".problem")).to_contain_text("Nothing was stored yet")
            self.assertEqual(self.call("nudge.records.list", project="*")["total"], 2 if "Change" in answer else 1)
            page.get_by_role("button", name=answer).click()
            expect(detail(page).locator("form")).to_have_count(0)
            self.assertEqual(self.call("nudge.records.list", project="*")["total"], 2)
        self.assertEqual(self.record(one)["version"], 2)


class Looks(Records):
    def seed(self):
        self.save("Uploads are refused " + "very long " * 25, "body " * 400)
        one = self.save("Cache by key", "x" * 3000, "arch", status="resolved")
        self.call("nudge.records.upsert", id=one, body="y" * 2000)
        self.save("Third", "", "issue", project="acme/" + "d" * 200)

    def test_everything_works_by_keyboard(self):
        self.seed()
        page = self.records_page()
        chosen = page.locator(".records [aria-selected=true]")
        page.keyboard.press("j")
        expect(chosen.locator(".name")).to_have_text("Third")
        expect(chosen).to_be_focused()
        page.keyboard.press("ArrowDown")
        expect(chosen.locator(".name")).to_have_text("Cache by key")
        expect(detail(page).locator("h2.title")).to_have_text("Cache by key")
        page.keyboard.press("End")
        expect(chosen.locator(".name")).to_contain_text("Uploads are refused")
        page.keyboard.press("Home")
        page.keyboard.press("Enter")
        expect(detail(page)).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Edit")).to_be_focused()
        self.assertNotEqual(page.evaluate("getComputedStyle(document.activeElement).outlineStyle"), "none")
        page.keyboard.press("e")
        expect(page.get_by_label("Title, one line")).to_be_focused()
        page.keyboard.type("j/4")
        expect(page.get_by_label("Title, one line")).to_have_value("Thirdj/4")
        page.keyboard.press("Escape")
        expect(detail(page).locator("form")).to_have_count(0)
        page.keyboard.press("Escape")
        expect(chosen).to_be_focused()
        page.keyboard.press("d")
        expect(page.locator("#toast")).to_contain_text("Deleted record 3.")
        expect(rows(page)).to_have_count(2)
        page.keyboard.press("u")
        expect(rows(page)).to_have_count(3)
        page.keyboard.press("/")
        page.keyboard.type("cache")
        expect(names(page).first).to_have_text("Cache by key")
        page.keyboard.press("Enter")
        expect(chosen).to_be_focused()
        expect(chosen.locator(".name")).to_have_text("Cache by key")
        # A live change leaves the focus where it is.
        focused = page.evaluate("document.activeElement.dataset.focus")
        self.save("Cache of another kind", "cache", "arch")
        expect(page.locator("#count-records")).to_have_text("4")
        self.assertEqual(page.evaluate("document.activeElement.dataset.focus"), focused)
        # In the view of hints, its own keys work again.
        page.keyboard.press("1")
        page.keyboard.press("/")
        expect(page.get_by_label("Search in words")).to_be_focused()

    def test_light_dark_and_400_pixels(self):
        self.seed()
        for scheme in ("light", "dark"):
            for width in (1200, 400):
                page = self.records_page(viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce")
                search = lambda: (page.get_by_label("Search records").fill("cache uploads"), expect(page.locator(".found .mode")).to_be_visible())
                steps = [lambda: None, lambda: page.keyboard.press("j"), lambda: page.keyboard.press("j"),
                         lambda: (page.keyboard.press("Enter"), page.get_by_text("version 1, replaced").click()),
                         lambda: page.keyboard.press("e"), lambda: page.keyboard.press("Escape"), lambda: page.keyboard.press("Escape"),
                         search, lambda: rows(page).first.click()]
                for number, step in enumerate(steps):
                    step()
                    expect(page.locator("#live-text")).to_have_text("Live")
                    assert_fits_the_width(self, page)
                    seen, bad = page.evaluate(CONTRAST)
                    self.assertGreater(seen, 8)
                    self.assertEqual(bad, [], f"{scheme} {width} {number}")
                page.context.close()

    def test_on_a_narrow_screen_list_and_record_take_turns(self):
        self.seed()
        page = self.records_page(viewport={"width": 400, "height": 800})
        expect(detail(page)).to_be_hidden()
        rows(page).last.click()
        expect(detail(page)).to_be_visible()
        expect(rows(page).last).to_be_hidden()
        # Other changes leave the record that a person reads open.
        self.call("nudge.set_hint", component="api", key="build", value="make")
        expect(page.locator("#count-hints")).to_have_text("1")
        expect(detail(page)).to_be_visible()
        page.get_by_role("button", name="‹ List").click()
        expect(rows(page).last).to_be_visible()
        expect(detail(page)).to_be_hidden()
        page.get_by_role("button", name="New record").click()
        expect(page.get_by_label("Title, one line")).to_be_visible()
        page.get_by_role("button", name="Cancel").click()
        expect(rows(page).last).to_be_visible()


class Hostile(Records):
    def assert_harmless(self, page):
        test_hostile.Texts.assert_harmless(self, page)

    def test_hostile_texts_in_list_search_revisions_comparison_and_form(self):
        texts = {name: " ".join(text.split())[:250] for name, text in TEXTS.items() if text.strip()}
        ids = {}
        for name, text in texts.items():
            project = f"{name} {text}"[:200]
            ids[name] = self.save(text, text, project=project)
            self.call("nudge.records.upsert", id=ids[name], body=f"{text}\n{text}", title=f"{text} upload"[:300])
            self.save(text[::-1], text, project=project)
        for name, text in VALUES.items():
            self.save(f"value {name}", text[:30_000])
        for width in (1200, 400):
            page = self.records_page(viewport={"width": width, "height": 800})
            expect(rows(page)).to_have_count(2 * len(texts) + len(VALUES))
            self.assert_harmless(page)
            for _ in range(rows(page).count()):
                page.keyboard.press("j")
                chosen = page.locator(".records [aria-selected=true]")
                expect(chosen).to_have_count(1)
                number = chosen.get_attribute("data-focus").split("-")[1]
                expect(detail(page)).to_contain_text(re.compile(f"{number}, version"))
                self.assert_harmless(page)
            for name, id in ids.items():
                page.locator(f".records [data-focus=record-{id}]").click()
                expect(detail(page)).to_contain_text(f"{id}, version 2")
                page.get_by_text("version 1, replaced").click()
                self.assert_harmless(page)
                detail(page).get_by_role("button", name="Compare").click()
                expect(detail(page).locator(".compared section")).to_have_count(2)
                self.assert_harmless(page)
                detail(page).get_by_role("button", name="Leave both").click()
                page.locator(f".records [data-focus=record-{id}]").click()
                expect(detail(page)).to_contain_text(f"{id}, version 2")
                page.keyboard.press("e")
                self.assert_harmless(page)
                # The form changes no character that the user did not edit.
                before = self.record(id)
                page.get_by_role("button", name="Store", exact=True).click()
                expect(detail(page).locator("form")).to_have_count(0)
                self.assertEqual({**self.record(id), "similar": None}, {**before, "similar": None}, name)
                page.keyboard.press("Escape")
            page.get_by_label("Search records").fill("upload onerror script")
            expect(page.locator(".found .mode")).to_be_visible()
            self.assert_harmless(page)
            page.context.close()

    def test_a_form_changes_no_line_end_that_was_not_touched(self):
        for name, text in VALUES.items():
            id = self.save(f"value {name}", text[:30_000])
            page = self.records_page()
            page.locator(f".records [data-focus=record-{id}]").click()
            expect(detail(page)).to_contain_text(f"{id}, version 1")
            page.keyboard.press("e")
            page.get_by_label("Title, one line").fill(f"title {name}")
            page.get_by_role("button", name="Store", exact=True).click()
            expect(detail(page).locator("h2.title")).to_have_text(f"title {name}")
            self.assertEqual(self.record(id)["body"], text[:30_000], name)
            page.context.close()


if __name__ == "__main__":
    unittest.main()
