"""Tests the upstream plugin's routes below /api, and the port on which `nudge ui --port` serves them with the page."""

import http.client
import json
import socket
import unittest
from pathlib import Path

from kit import expect
from recorded import Records, names, rows


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Api(Records):
    """Tests the routes as a program uses them, and as the page uses them."""

    def setUp(self):
        super().setUp()
        self.asked = free_port()
        self.nudge("ui", "--no-open", "--port", str(self.asked))
        self.token = json.loads(Path(self.home, "run/server.pid").read_text())["token"]

    def ask(self, method, path, body=None, token=None, port=None, **headers):
        """Sends a request; returns status, headers and body."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        token = self.token if token is None else token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", port or self.asked, timeout=20)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        names = {name.lower() for name in answer.headers}
        self.assertFalse({name for name in names if name.startswith("access-control") or name == "set-cookie"}, path)
        read = json.loads(text) if "json" in answer.headers.get("Content-Type", "") else text.decode()
        if answer.status >= 400:
            self.assertTrue(read["error"]["message"].strip().endswith("."), read)
            self.assertNotIn("\n", read["error"]["message"])
        return answer.status, read

    def test_the_eight_routes(self):
        status, page = self.ask("GET", "/", token="")
        self.assertEqual((status, page[:15]), (200, "<!doctype html>"))
        self.assertEqual(self.ask("GET", "/api/projects"), (200, []))
        self.assertEqual(self.ask("GET", "/api/records"), (200, []))
        new = {"kind": "issue", "title": "Uploads are refused", "body": "nginx", "project": "acme/shop", "create_project": True}
        status, made = self.ask("POST", "/api/records", new)
        self.assertEqual(status, 201)
        fields = {"id", "project", "kind", "title", "body", "status", "created_at", "updated_at"}
        self.assertLessEqual(fields, set(made))
        self.assertEqual([made[name] for name in ("id", "project", "status")], [1, "acme/shop", "open"])
        self.assertEqual(self.ask("GET", "/api/records/1"), (200, made))
        status, other = self.ask("POST", "/api/records", {**new, "title": "Plan", "kind": "spec", "project": "a b/ü"})
        self.assertEqual((status, other["id"]), (201, 2))
        status, changed = self.ask("PUT", "/api/records/1", {"status": "resolved", "if_match_version": 1})
        self.assertEqual((status, changed["status"], changed["body"], changed["version"]), (200, "resolved", "nginx", 2))
        self.assertEqual(self.ask("PUT", "/api/records/1", {"id": 1, "kind": "issue", "title": "Uploads are refused"})[0], 200)
        listed = lambda query: [record["id"] for record in self.ask("GET", f"/api/records?{query}")[1]]
        self.assertEqual(sorted(listed("")), [1, 2])
        self.assertEqual(listed("project=acme%2Fshop"), [1])
        self.assertEqual(listed("project=a+b%2F%C3%BC&kind=spec&status=open"), [2])
        self.assertEqual(listed("project=&kind=all&status=resolved"), [1])
        self.assertEqual(listed("project=nobody"), [])
        status, found = self.ask("POST", "/api/search", {"query": "uploads refused", "kind": "all", "limit": 3})
        self.assertEqual((status, [hit["id"] for hit in found]), (200, [1]))
        self.assertLessEqual({"id", "project", "kind", "title", "body", "status", "similarity"}, set(found[0]))
        projects = self.ask("GET", "/api/projects")[1]
        self.assertEqual({one["name"] for one in projects}, {"acme/shop", "a b/ü"})
        self.assertLessEqual({"id", "name", "created_at", "updated_at"}, set(projects[0]))
        self.assertEqual(self.ask("DELETE", "/api/records/1"), (200, {"deleted": True, "id": 1}))
        self.assertEqual(self.ask("GET", "/api/records/1")[0], 404)
        # The session's own port also has the routes. The list is complete even if it is very long.
        file = Path(self.home, "many.json")
        at = "2026-01-01T00:00:00.000Z"
        many = [{"project": "acme/shop", "kind": "issue", "title": f"Record {n}", "body": "", "status": "open", "created_at": at, "updated_at": at} for n in range(1003)]
        file.write_text(json.dumps({"format": "nudge-records/1", "records": many}))
        self.nudge("records", "import", str(file))
        self.assertEqual(len(self.ask("GET", "/api/records", port=self.port)[1]), 1004)

    def test_what_is_wrong_is_refused_with_a_sentence_and_changes_nothing(self):
        one = self.save("Uploads are refused", "nginx")
        for method, path, body, expected in [
            ("POST", "/api/records", "", 400), ("POST", "/api/records", "{", 400), ("POST", "/api/records", "[]", 400),
            ("POST", "/api/records", "null", 400), ("POST", "/api/records", b"\xff\xfe", 400), ("POST", "/api/records", {}, 400),
            ("POST", "/api/records", {"kind": "bug", "title": "x"}, 400), ("POST", "/api/records", {"kind": "issue"}, 400),
            ("POST", "/api/records", {"kind": "issue", "title": 7}, 400),
            ("POST", "/api/records", {"kind": "issue", "title": "x", "project": "minerva/shpo"}, 400),
            ("POST", "/api/records", {"kind": "issue", "title": "x"}, 400),
            ("POST", "/api/records", {"id": one, "kind": "issue", "title": "x", "project": "minerva/shop"}, 400),
            ("POST", "/api/records", {"kind": "issue", "title": "x", "project": "minerva/shop", "more": 1}, 400),
            ("POST", "/api/records", {"kind": "issue", "title": "x", "body": "y" * 40_000, "project": "minerva/shop"}, 400),
            ("POST", "/api/records", {"kind": "issue", "title": "".join(["ghp", "_", "aB3dE6gH9j" * 3, "aB3dE6"]), "project": "minerva/shop"}, 400),
            ("PUT", f"/api/records/{one}", "7", 400), ("PUT", f"/api/records/{one}", {"id": one + 1, "title": "x"}, 400),
            ("PUT", f"/api/records/{one}", {"title": "x", "if_match_version": 9}, 409), ("PUT", "/api/records/99", {"title": "x"}, 404),
            ("DELETE", "/api/records/99", None, 404), ("GET", "/api/records/99", None, 404), ("GET", "/api/records/x", None, 404),
            ("GET", "/api/records/-1", None, 404), ("GET", "/api", None, 404), ("GET", "/api/none", None, 404),
            ("GET", "/api/records?kind=bug", None, 400), ("GET", "/api/records?limit=1", None, 400), ("GET", "/api/records?project=%ff", None, 400),
            ("POST", "/api/search", {}, 400), ("POST", "/api/search", {"query": "x", "limit": 51}, 400), ("POST", "/api/search", '"x"', 400),
            ("PATCH", f"/api/records/{one}", {}, 405), ("POST", f"/api/records/{one}", {}, 405), ("PUT", "/api/records", {}, 405),
            ("DELETE", "/api/records", None, 405), ("GET", "/api/search", None, 405), ("OPTIONS", "/api/records", None, 405),
        ]:
            status, answer = self.ask(method, path, body)
            self.assertEqual(status, expected, f"{method} {path} {body}: {answer}")
            self.assertNotIn("aB3dE6gH9j", json.dumps(answer))
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            self.assertEqual(self.ask("POST", "/api/records", "{}", Content_Type=kind)[0], 415)
            self.assertEqual(self.ask("PUT", f"/api/records/{one}", "{}", Content_Type=kind)[0], 415)
        self.assertEqual((self.record(one)["version"], self.call("nudge.records.list", project="*")["total"]), (1, 1))

    def test_a_caller_without_a_right_is_refused(self):
        one = self.save("Uploads are refused", "nginx")
        routes = [("GET", "/api/projects", None), ("GET", "/api/records", None), ("GET", f"/api/records/{one}", None), ("POST", "/api/search", {"query": "x"}),
                  ("POST", "/api/records", {"kind": "issue", "title": "x", "project": "minerva/shop"}),
                  ("PUT", f"/api/records/{one}", {"title": "x"}), ("DELETE", f"/api/records/{one}", None)]
        for method, path, body in routes:
            for token in ("", "x", self.token[1:], self.token[::-1]):
                self.assertEqual(self.ask(method, path, body, token=token)[0], 401, f"{method} {path}")
            for headers in ({"Origin": f"http://127.0.0.1:{self.asked + 1}"}, {"Origin": f"http://localhost:{self.asked}"}, {"Origin": "null"},
                            {"Origin": "https://evil.example"}, {"Origin": f"http://127.0.0.1:{self.port}"}, {"Sec_Fetch_Site": "same-site"},
                            {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "none"}, {"Host": "evil.example"}, {"Host": f"evil.example:{self.asked}"},
                            {"Host": f"127.0.0.1:{self.asked + 1}"}):
                self.assertEqual(self.ask(method, path, body, **headers)[0], 403, f"{method} {path} {headers}")
        own = {"Origin": f"http://127.0.0.1:{self.asked}", "Sec_Fetch_Site": "same-origin"}
        self.assertEqual(self.ask("GET", "/api/projects", **own)[0], 200)
        self.assertEqual((self.record(one)["version"], self.call("nudge.records.list", project="*")["total"]), (1, 1))

    def test_the_page_there_calls_with_its_token_and_may_no_more_than_at_home(self):
        one = self.save("Uploads are refused", "nginx")
        page = self.tab()
        page.goto(self.nudge("ui", "--no-open", "--port", str(self.asked)).strip())
        self.assertIn(f":{self.asked}/", page.url)
        expect(page.locator("#live[data-kind=live]")).to_be_visible()
        page.keyboard.press("4")
        expect(names(page)).to_have_text(["Uploads are refused"])
        token = page.evaluate("sessionStorage.getItem('nudge-token')")
        call = """async ([method, path, body, token]) => {
            const answer = await fetch(path, {method, headers: {Authorization: `Bearer ${token}`, ...(body ? {'Content-Type': 'application/json'} : {})}, body: body && JSON.stringify(body)})
            return [answer.status, await answer.json()]
        }"""
        status, changed = page.evaluate(call, ["PUT", f"/api/records/{one}", {"status": "resolved"}, token])
        self.assertEqual((status, changed["status"]), (200, "resolved"))
        self.assertEqual(self.record(one)["by"].split("/")[0], "nudge-page")
        expect(rows(page)).to_contain_text("resolved")
        status, made = page.evaluate(call, ["POST", "/api/records", {"kind": "arch", "title": "By the page", "project": "minerva/shop"}, token])
        self.assertEqual((status, made["origin"]), (201, "web"))
        # The same token opens no other path.
        self.expected = ["401", "403"]
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "nudge.export", "params": {}}
        for path in ("/", "/mcp"):
            self.assertEqual(self.ask("POST", path, rpc, token=token)[0], 401, path)
        for method in ("nudge.export", "nudge.shutdown", "nudge.open_page", "nudge.records.import", "nudge.records.backup", "nudge.get_hint"):
            status, answer = page.evaluate(call, ["POST", "/web/rpc", {**rpc, "method": method}, token])
            self.assertEqual((status, answer["error"]["code"]), (200, -32601), method)
        # The session's token does not open the page's own routes.
        self.assertEqual(self.ask("POST", "/web/rpc", rpc, Sec_Fetch_Site="same-origin")[0], 401)
        # A page of another port gets no data with this token.
        other = self.tab()
        other.goto(self.address())
        self.expected = [".*"]
        got = other.evaluate("""async ([url, token]) => {
            try { return (await fetch(url, {headers: {Authorization: `Bearer ${token}`}})).status } catch { return null }
        }""", [f"http://127.0.0.1:{self.asked}/api/projects", token])
        self.assertIsNone(got)

    def test_a_port_that_is_taken_is_refused_in_one_sentence(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = other.getsockname()[1]
            refused = self.refusal("ui", "--no-open", "--port", str(taken))
            self.assertEqual(json.loads(refused)["message"], f"Port {taken} is taken by another program; give another with --port.")
            self.env["DUDE_PORT"] = str(taken)
            self.assertIn("is taken by another program", self.refusal("ui", "--no-open"))
        for wrong in ("x", "0", "70000"):
            self.env["DUDE_PORT"] = wrong
            self.assertIn("DUDE_PORT must be a port from 1 to 65535", self.refusal("ui", "--no-open"))
        self.env["DUDE_PORT"] = str(self.asked)
        self.assertIn(f":{self.asked}/", self.nudge("ui", "--no-open"))
        # The flag overrides the variable. The session's own port is enough, so no second port opens.
        self.assertIn(f":{self.port}/", self.nudge("ui", "--no-open", "--port", str(self.port)))


if __name__ == "__main__":
    unittest.main()
