"""Tests keys, colours and narrow screens, and a page whose server ends and starts."""

import os
import re
import signal
import subprocess
import unittest

from kit import NUDGE, Web, assert_fits_the_width, expect, row

# Returns the contrast of every visible text with its background (WCAG 2.1, 1.4.3).
CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true})
  const read = color => {
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = color
    canvas.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
    return [r, g, b, a / 255]
  }
  const over = ([r, g, b, a], under) => [r, g, b].map((c, n) => c * a + under[n] * (1 - a))
  const ground = one => {
    const layers = []
    for (let at = one; at; at = at.parentElement) layers.unshift(read(getComputedStyle(at).backgroundColor))
    return layers.reduce((under, layer) => over(layer, under), [255, 255, 255])
  }
  const light = color => {
    const [r, g, b] = color.map(c => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const bad = []
  let seen = 0
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())
    if (!own || !one.checkVisibility() || one.closest('.unseen, .skip, option')) continue
    seen++
    const behind = ground(one)
    const [a, b] = [light(over(read(getComputedStyle(one).color), behind)), light(behind)].sort((x, y) => y - x)
    const ratio = (a + 0.05) / (b + 0.05)
    if (ratio < 4.5) bad.push(`${one.tagName}.${one.className} ${ratio.toFixed(2)} ${one.textContent.slice(0, 30)}`)
  }
  return [seen, bad]
}"""


class Living(Web):
    def seed(self):
        self.nudge("set", "api", "build", "make api", "--priority", "9", "--tags", "a,b", "--reason", "why not")
        self.nudge("set", "api", "test", "make test")
        self.nudge("set", "web", "dev", "npm run dev " + "--very-long-flag=value " * 30, "--scope-branch", "main")
        self.nudge("set", "db", "password", "open sesame", "--secret")
        for _ in range(3):
            self.call("outcome", command="make test", ok=False, client_session="agent", context={"repo": "minerva/shop"})
        self.hook("SessionStart", "agent", source="startup")
        self.nudge("set", "gone", "k", "v")
        self.nudge("delete", "gone", "k")

    def test_everything_works_by_keyboard(self):
        self.seed()
        page = self.open()
        chosen = page.locator("[role=option][aria-selected=true]")
        first = chosen.locator(".name").inner_text()
        page.keyboard.press("j")
        expect(chosen).to_be_focused()
        self.assertNotEqual(chosen.locator(".name").inner_text(), first)
        page.keyboard.press("ArrowUp")
        expect(chosen.locator(".name")).to_have_text(first)
        page.keyboard.press("End")
        expect(chosen.locator(".name")).to_have_text("web/dev")
        page.keyboard.press("Home")
        expect(chosen.locator(".name")).to_have_text(first)
        page.keyboard.press("Enter")
        expect(page.locator("#detail")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Edit")).to_be_focused()
        self.assertNotEqual(page.evaluate("getComputedStyle(document.activeElement).outlineStyle"), "none")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Value", exact=True)).to_be_focused()
        page.keyboard.type("j/?")
        expect(page.get_by_label("Value", exact=True)).to_have_value(re.compile(r"j/\?"))
        page.keyboard.press("Escape")
        expect(page.locator("#detail form")).to_have_count(0)
        page.keyboard.press("Escape")
        expect(chosen).to_be_focused()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        page.keyboard.press("d")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.keyboard.press("/")
        page.keyboard.type("npm dev")
        expect(page.get_by_role("option")).to_have_text([re.compile("web/dev")])
        page.keyboard.press("ArrowDown")
        expect(chosen).to_be_focused()
        page.keyboard.press("d")
        expect(page.locator("#toast")).to_contain_text("Deleted web/dev")
        self.assertIsNone(self.hint("web", "dev"))
        page.keyboard.press("u")
        expect(page.locator("#toast")).to_contain_text("Brought back 1 hint")
        self.assertIsNotNone(self.hint("web", "dev"))
        page.keyboard.press("Escape")
        expect(page.get_by_role("searchbox")).to_have_value("")
        expect(page.get_by_role("option")).to_have_count(4)
        # A live change leaves the focus where it is.
        page.keyboard.press("j")
        focused = page.evaluate("document.activeElement.dataset.focus")
        self.nudge("set", "new", "one", "x")
        expect(page.get_by_role("option")).to_have_count(5)
        self.assertEqual(page.evaluate("document.activeElement.dataset.focus"), focused)
        # The Tab key goes through the whole page, past its head if the user wants, and every stop has a name.
        page.reload()
        expect(page.get_by_role("option")).to_have_count(5)
        page.evaluate("window.before = true")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to what is known")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        self.assertTrue(page.evaluate("window.before"), "that is no reason to load it anew")
        page.reload()
        expect(page.locator("#live-text")).to_have_text("Live")
        names = []
        for _ in range(14):
            page.keyboard.press("Tab")
            names.append(page.evaluate("(one => one.ariaLabel || one.labels?.[0]?.textContent || one.textContent.trim())(document.activeElement)"))
        self.assertTrue(all(names), names)
        for name in ("Search in words", "Keys", "Change", "Told to agents 1", "Edit"):
            self.assertIn(name, names)

    def test_light_dark_and_400_pixels(self):
        self.seed()
        for scheme in ("light", "dark"):
            for width in (1200, 400):
                page = self.open(viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce")
                page.keyboard.press("j")
                backgrounds = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
                self.assertEqual(sum(map(int, re.findall(r"\d+", backgrounds)[:3])) > 380, scheme == "light", backgrounds)
                views = [lambda: None, lambda: page.keyboard.press("Enter"), lambda: page.keyboard.press("e"), lambda: page.keyboard.press("Escape"),
                         lambda: page.keyboard.press("2"), lambda: page.keyboard.press("3"), lambda: page.keyboard.press("?")]
                for number, go in enumerate(views):
                    go()
                    assert_fits_the_width(self, page)
                    seen, bad = page.evaluate(CONTRAST)
                    self.assertGreater(seen, 8)
                    self.assertEqual(bad, [], f"{scheme} {width} {number}")
                page.context.close()

    def test_on_a_narrow_screen_list_and_hint_take_turns(self):
        self.seed()
        page = self.open(viewport={"width": 400, "height": 800})
        expect(page.locator("#detail")).to_be_hidden()
        row(page, "api/build").click()
        expect(page.locator("#detail")).to_be_visible()
        expect(page.locator("#list")).to_be_hidden()
        page.get_by_role("button", name="‹ List").click()
        expect(page.locator("#list")).to_be_visible()
        expect(page.locator("#detail")).to_be_hidden()

    def test_it_goes_on_with_the_next_server_of_the_session(self):
        self.nudge("set", "api", "build", "make api")
        page = self.open()
        next_server = subprocess.Popen([NUDGE, "serve", "--detached"], env=self.env, cwd=self.project,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(next_server.wait)
        self.addCleanup(next_server.kill)
        deadline = 200
        while next_server.pid not in self.call("status")["proxies"]:
            deadline -= 1
            self.assertGreater(deadline, 0, "the next server stands by")
        first = self.call("status")["pid"]
        self.expected = ["ERR_CONNECTION", "ERR_EMPTY", "net::"]
        os.kill(first, signal.SIGKILL)
        # A change during the handover between two servers is made exactly once.
        page.keyboard.press("e")
        page.get_by_label("Value", exact=True).fill("make again")
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.locator("#detail pre")).to_have_text("make again")
        self.assertEqual(self.hint("api", "build")["version"], 2)
        self.nudge("set", "api", "test", "make test")
        expect(row(page, "api/test")).to_be_visible()
        expect(page.locator("#live-text")).to_have_text("Live")
        self.assertNotEqual(self.call("status")["pid"], first)
        self.nudge("stop")

    def test_a_session_that_ended_says_what_to_do(self):
        self.nudge("set", "api", "build", "make api")
        page = self.open()
        self.expected = ["ERR_CONNECTION", "ERR_EMPTY", "net::", "401", "403"]
        self.nudge("stop")
        expect(page.locator("#live-text")).to_have_text("No answer")
        expect(page.locator("#notice")).to_contain_text("nudge serve --detach")
        self.serve()
        expect(page.locator("#notice")).to_contain_text("This page is not known here any more; run `nudge ui` again")
        expect(page.locator("#live-text")).to_have_text("Ended")
        # A new address in the same tab opens the page again.
        page.evaluate("address => { location.href = address }", self.address())
        expect(page.locator("#live-text")).to_have_text("Live")
        # The kept hint is shown again.
        expect(page.get_by_role("option")).to_have_text([re.compile("api/build")])


if __name__ == "__main__":
    unittest.main()
