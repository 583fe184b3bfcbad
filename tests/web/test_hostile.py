"""Tests hostile texts, which try to become markup or scripts, and hostile web pages."""

import hashlib
import json
import re
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kit import ROOT, Web, assert_fits_the_width, expect

TEXTS = {
    "script": "<script>window.pwned = 1</script>",
    "image": "<img src=x onerror='window.pwned = 1'>",
    "svg": "<svg onload='window.pwned = 1'><a xlink:href='javascript:window.pwned=1'>x</a></svg>",
    "link": "javascript:window.pwned=1",
    "broken": "\"'></textarea></pre></option></dialog><style>*{display:none}</style>",
    "template": "${window.pwned=1}{{constructor.constructor('window.pwned=1')()}}%00&lt;b&gt;",
    "bidi": "safe\u202eevil\u2066x\u2069\u200b\ufeff\u00ad",
    "emoji": "👩‍👩‍👧‍👦 ❤️ 🏳️‍🌈 日本語 עברית مرحبا",
    "prototype": "__proto__",
    "wide": "w" * 200,
}
# These fields also allow control characters and long texts.
VALUES = {
    **TEXTS,
    "lines": "one\r\n\ttwo\n\n<b>three</b>\x00\x1b]52;c;QQ==\x07",
    "long": "<img src=x onerror=window.pwned=1>" * 1927,
}
# Characters that the screen must not show as they are: they are invisible, or they reverse the order of text.
UNSEEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\ufeff\u00ad\x00\x07\x1b]")


class Texts(Web):
    def assert_harmless(self, page):
        self.assertIsNone(page.evaluate("window.pwned ?? null"))
        self.assertIsNone(page.evaluate("Object.prototype.pwned ?? null"))
        made = page.evaluate("""[...document.querySelectorAll('body *')].filter(one =>
            ['SCRIPT', 'IMG', 'SVG', 'svg', 'STYLE', 'IFRAME', 'A', 'B'].includes(one.tagName)
            && !one.matches('h1 img, a.skip, .name b, .title b, #detail b, #view-deleted b')).map(one => one.outerHTML.slice(0, 200))""")
        self.assertEqual(made, [])
        handlers = page.evaluate("""[...document.querySelectorAll('*')].flatMap(one => one.getAttributeNames()
            .filter(name => name.startsWith('on') || name === 'style').map(name => one.outerHTML.slice(0, 200)))""")
        self.assertEqual(handlers, [])
        self.assertIsNone(UNSEEN.search(page.evaluate("document.body.innerText")))
        assert_fits_the_width(self, page)

    def test_hostile_texts_in_every_field(self):
        for name, text in TEXTS.items():
            scope = {"env_match": {f"E_{name}": [text]}, "env_required": [text.replace("=", "")]}
            self.call("set_hint", component=text, key=text, value={"type": "command", "cmd": text}, allow_secret=True, meta={
                "reason": text, "tags": [text.encode()[:64].decode(errors="ignore")], "added_by": text, "scope": scope})
            # The scope of the hint fits this context.
            self.call("set_hint", component=f"{name} {text}"[:200], key=name, allow_secret=True,
                      value={"type": "template", "format": "jinja", "body": text, "defaults": {text: text}}, meta={"reason": text})
            self.call("suggest", event="start", client_session=text, context={"cwd": f"/{text}".replace("//", "/").replace("/..", ""), "repo": "a/b", "branch": text})
        for name, text in VALUES.items():
            self.call("set_hint", component="values", key=name, value=text, allow_secret=True)
            self.call("set_hint", component="values", key=f"{name} json", value={"type": "json", "data": {text[:60]: [text[:2000], None]}}, allow_secret=True)
            self.call("set_hint", component="gone", key=name, value=text, allow_secret=True)
            self.nudge("delete", "gone", name)
        self.call("set_hint", component="globs", key="k", value="v", meta={"scope": {"cwd_glob": ["/w/<img src=x onerror=alert(1)>/**"], "branch": ["<b>\u202ex"]}})
        for width in (1200, 400):
            page = self.open(viewport={"width": width, "height": 800})
            options = page.get_by_role("option")
            expect(options).to_have_count(len(TEXTS) * 2 + len(VALUES) * 2 + 1)
            self.assert_harmless(page)
            for _ in range(options.count()):
                chosen = page.locator("[role=option][aria-selected=true]")
                name = chosen.locator(".name").inner_text()
                expect(page.locator("#detail h2.title")).to_have_text(name)
                page.keyboard.press("Enter")
                self.assert_harmless(page)
                page.keyboard.press("Escape")
                page.keyboard.press("j")
            for view in ("2", "3"):
                page.keyboard.press(view)
                self.assert_harmless(page)
            page.keyboard.press("1")
            for text in VALUES.values():
                page.get_by_role("searchbox").fill(text[:900])
            page.get_by_role("searchbox").fill("onerror")
            expect(page.locator("#found")).to_contain_text("hint")
            self.assert_harmless(page)
            page.keyboard.press("Escape")

    def test_a_form_changes_no_character_that_was_not_touched(self):
        digest = lambda text: hashlib.sha256(text.encode()).hexdigest()
        for name, text in VALUES.items():
            self.call("set_hint", component="values", key=name, value=text, allow_secret=True, meta={"ttl": "session"})
        page = self.open()
        for name, text in VALUES.items():
            page.locator("[role=option]").filter(has=page.locator("b", has_text=re.compile(f"^{name}$"))).click()
            page.keyboard.press("e")
            page.get_by_label("Why it is worth knowing").fill(f"reason of {name}")
            page.get_by_role("button", name="Store", exact=True).click()
            problem, detail = page.locator(".problem"), page.locator("#detail .reason")
            expect(problem.or_(detail).first).to_be_visible()
            if problem.is_visible():
                expect(problem).to_contain_text("credential")
                page.get_by_label("It is a false alarm").check()
                page.get_by_role("button", name="Store", exact=True).click()
            expect(page.locator("#detail .reason")).to_have_text(f"reason of {name}")
            self.assertEqual(digest(self.hint("values", name)["value"]), digest(text), name)

    def test_hidden_characters_are_written_out_as_in_the_library(self):
        rust = (ROOT / "nudge/core/src/text.rs").read_text()
        listed = rust.split("matches!(", 1)[1].split(")\n}", 1)[0]
        ranges = [tuple(int(end, 16) for end in (first, last or first))
                  for first, last in re.findall(r"'\\u\{([0-9a-f]+)\}'(?:\.\.='\\u\{([0-9a-f]+)\}')?", listed)]
        self.assertGreater(len(ranges), 15)
        control = [(0, 0x1F), (0x7F, 0x9F)]
        page = self.open()
        found = page.evaluate("""async () => {
            const {visible} = await import('/web/dom.js')
            const out = []
            for (let code = 0; code <= 0x10ffff; code++) {
                if (code >= 0xd800 && code <= 0xdfff) continue
                const c = String.fromCodePoint(code)
                if (visible(c) !== c) out.push(code)
            }
            return out
        }""")
        self.assertEqual(found, sorted(code for first, last in ranges + control for code in range(first, last + 1)))


class Foreign(BaseHTTPRequestHandler):
    """A page of another program on this machine."""

    page = b""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page)

    do_POST = do_GET

    def log_message(self, *_):
        pass


ATTACK = """<!doctype html><iframe id=frame src="%(nudge)s/web"></iframe><script>
const call = {jsonrpc: '2.0', id: 1, method: 'nudge.set_hint', params: {component: 'pwned', key: 'k', value: 'v'}}
const attempts = {
  async read() { return (await fetch('%(nudge)s/web')).text() },
  async script() { return (await fetch('%(nudge)s/web/app.js')).text() },
  async code() { return (await fetch('%(nudge)s/web/session', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({code: '%(code)s'})})).text() },
  async codeBlind() { return (await fetch('%(nudge)s/web/session', {method: 'POST', mode: 'no-cors', body: JSON.stringify({code: '%(code)s'})})).text() },
  async token() { return (await fetch('%(nudge)s/web/rpc', {method: 'POST', headers: {'Content-Type': 'application/json', Authorization: 'Bearer %(token)s'}, body: JSON.stringify(call)})).text() },
  async tokenBlind() { return (await fetch('%(nudge)s/web/rpc', {method: 'POST', mode: 'no-cors', body: JSON.stringify(call)})).text() },
  async root() { return (await fetch('%(nudge)s/', {method: 'POST', headers: {'Content-Type': 'application/json', Authorization: 'Bearer %(token)s'}, body: JSON.stringify(call)})).text() },
  async module() { return JSON.stringify(await import('%(nudge)s/web/rpc.js')) },
  async tag() { return new Promise((yes, no) => { const s = document.createElement('script'); s.src = '%(nudge)s/web/words.js'; s.onload = () => yes('loaded'); s.onerror = no; document.head.append(s) }) },
  async frame() { return document.getElementById('frame').contentDocument.body.textContent },
  async form() {
    const form = document.createElement('form'), field = document.createElement('input')
    Object.assign(form, {method: 'POST', action: '%(nudge)s/web/session', enctype: 'text/plain', target: 'sink'})
    Object.assign(field, {name: '{"code":"%(code)s","x":"', value: '"}'})
    const sink = document.createElement('iframe'); sink.name = 'sink'
    form.append(field); document.body.append(sink, form); form.submit()
    await new Promise(done => { sink.onload = done; setTimeout(done, 1500) })
    return sink.contentDocument.body.textContent
  },
}
window.results = (async () => {
  const out = {}
  for (const [name, attempt] of Object.entries(attempts)) {
    try { out[name] = await attempt() ?? '' } catch (error) { out[name] = null }
  }
  return out
})()
</script>"""


class Origins(Web):
    def serve_page(self, **values):
        page = ATTACK % values
        handler = type("Handler", (Foreign,), {"page": page.encode()})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_address[1]

    def test_other_origins_get_nothing_even_with_a_stolen_code_and_token(self):
        self.nudge("set", "api", "build", "make api")
        mine = self.open()
        token = mine.evaluate("sessionStorage.getItem('nudge-token')")
        address = self.address()
        nudge, code = address.split("/web#code=")
        port = self.serve_page(nudge=nudge, code=code, token=token)
        # A page on another port is on the same site. A page on another host name is on another site.
        for origin in (f"http://127.0.0.1:{port}", f"http://localhost:{port}"):
            page = self.tab()
            self.expected = [".*"]
            page.goto(origin)
            results = page.evaluate("window.results")
            self.assertGreater(len(results), 9)
            for name, got in results.items():
                # A no-cors request gets an answer that the foreign page cannot read. A form gets the refusal.
                self.assertNotIn("token", str(got).replace("nudge-token", ""), f"{origin} {name}")
                self.assertIn(got, (None, ""), f"{origin} {name}: {got}")
        self.assertIsNone(self.hint("pwned", "k"))
        # The real page can still use the code.
        last = self.tab()
        last.goto(address)
        expect(last.get_by_role("option")).to_have_count(1)

    def test_nothing_of_the_page_is_left_where_another_page_could_see_it(self):
        page = self.open()
        self.assertEqual(page.context.cookies(), [])
        self.assertNotIn("code", page.url)
        self.assertEqual(page.evaluate("history.length"), 2)
        page.go_back()
        self.assertNotIn("code", page.url)
        self.assertEqual(json.loads(page.evaluate("JSON.stringify({...localStorage})") if page.url.startswith("http") else "{}"), {})

    def test_an_address_works_once(self):
        self.nudge("set", "api", "build", "make api")
        address = self.address()
        first = self.tab()
        first.goto(address)
        expect(first.get_by_role("option")).to_have_count(1)
        self.expected = ["403"]
        second = self.tab()
        second.goto(address)
        expect(second.locator("#notice")).to_contain_text("used before, or is older than a minute; run `nudge ui` again")
        expect(second.get_by_role("option")).to_have_count(0)
        self.assertNotIn("code", second.url)
        # The page does not open without the address from `nudge ui`.
        bare = self.tab()
        bare.goto(address.split("#")[0])
        expect(bare.locator("#notice")).to_contain_text("nudge ui")
        # The tab that has access keeps it.
        first.goto(address)
        expect(first.locator("#live-text")).to_have_text("Live")
        expect(first.get_by_role("option")).to_have_count(1)


if __name__ == "__main__":
    unittest.main()


SQUATTER = """<!doctype html><title>squatter</title><script>
window.ready = (async () => {
  await navigator.serviceWorker.register('/worker.js', {scope: '/'})
  await navigator.serviceWorker.ready
  await fetch('/web')
  return true
})()
</script>"""
WORKER = """
self.addEventListener('install', () => self.skipWaiting())
self.addEventListener('activate', event => event.waitUntil(self.clients.claim()))
self.addEventListener('fetch', event => event.respondWith(new Response('<!doctype html><title>stolen</title>',
  {headers: {'Content-Type': 'text/html'}})))
"""


class Squatter(BaseHTTPRequestHandler):
    """Leaves a service worker and a cached page in the browser."""

    def do_GET(self):
        is_worker = self.path == "/worker.js"
        body = (WORKER if is_worker else SQUATTER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if is_worker else "text/html")
        self.send_header("Cache-Control", "max-age=31536000")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Squatted(Web):
    def test_a_former_holder_of_the_port_gets_nothing_of_the_page(self):
        self.nudge("set", "api", "build", "make api")
        self.nudge("stop")
        server = ThreadingHTTPServer(("127.0.0.1", self.port), Squatter)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = self.tab()
        names = [f"http://{name}:{self.port}" for name in ("127.0.0.1", "localhost", "squatter.localhost")]
        for origin in names:
            page.goto(f"{origin}/web")
            self.assertTrue(page.evaluate("window.ready"))
        server.shutdown()
        server.server_close()
        page.goto(f"{names[0]}/web")
        self.assertEqual(page.title(), "stolen", "the worker that was left answers at its own origin")
        self.serve()
        self.nudge("set", "api", "build", "make api")
        page.goto(self.address())
        expect(page.locator("#live[data-kind=live]")).to_be_visible()
        expect(page.get_by_role("option")).to_have_count(1)
        self.assertEqual(page.evaluate("navigator.serviceWorker.controller"), None)
