"""Installs each package of one binary into a clean place and uses it there. NUDGE_BIN names the binary."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import tomllib
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cli/package"))
import pack  # noqa: E402

BINARY = pathlib.Path(os.environ.get("NUDGE_BIN", ROOT / "target/debug/nudge")).resolve()
TARGET = (
    subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout.split("host: ")[1].split()[0]
)
HANDSHAKE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    '"clientInfo":{"name":"t","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"nudge_set_hint","arguments":'
    '{"component":"a","key":"b","value":"make"}}}\n'
)


LIBRARIES = os.environ.get("NUDGE_LIBRARIES")
STORY = (ROOT / "examples/expected.txt").read_text()
# Rows of package, way of installing, size in bytes, and seconds until the first answer.
INSTALLED = []


def tearDownModule():
    print("| | bytes | seconds until it has answered |\n|---|---|---|")
    for way, size, seconds in sorted(INSTALLED):
        print(f"| {way} | {size:,} | {seconds:.1f} |")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = pathlib.Path(cls.folder.name) / "out"
        make = [sys.executable, ROOT / "cli/package/pack.py", BINARY, TARGET, cls.out]
        subprocess.run(make, check=True, capture_output=True)
        cls.version = (cls.out / "VERSION").read_text().strip()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.clean = tempfile.TemporaryDirectory()
        self.addCleanup(self.clean.cleanup)
        self.home = pathlib.Path(self.clean.name)
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "NUDGE_RUNTIME_DIR": str(self.home / "runtime")}

    def run_it(self, *words, check=True, **more):
        env = {**self.env, **more.pop("env", {})}
        ran = subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True, **more)
        if check and ran.returncode:
            self.fail(f"{words}: exit {ran.returncode}: {ran.stderr}")
        return ran

    def one(self, pattern, folder=None):
        (found,) = (folder or self.out).glob(pattern)
        return found

    @contextlib.contextmanager
    def timed(self, way, *packages):
        start = time.monotonic()
        yield
        INSTALLED.append((way, sum(path.stat().st_size for path in packages), time.monotonic() - start))

    def assert_serves(self, *command):
        """Checks that an MCP client gets an answer to a call."""
        answer = self.run_it(*command, "serve", input=HANDSHAKE).stdout
        result = json.loads(answer.splitlines()[1])["result"]
        assert not result.get("isError", False), answer
        assert result["structuredContent"]["hint"]["value"] == "make"

    def assert_is_nudge(self, *command):
        assert self.run_it(*command, "--version").stdout == f"nudge {self.version}\n"
        assert self.run_it(*command, "get", "a", "b", check=False).returncode == 3, "no server runs"
        self.assert_serves(*command)

    def test_archive(self):
        top = self.home / f"nudge-{self.version}-{TARGET}"
        with self.timed("archive, unpacked", self.one("nudge-*.tar.gz")):
            with tarfile.open(self.one("nudge-*.tar.gz")) as archive:
                archive.extractall(self.home, filter="data")
            self.assert_serves(top / "nudge")
        for name in (
            "LICENSE-MIT",
            "completions/_nudge",
            "completions/nudge.bash",
            "man/nudge.1",
            "units/nudge.service",
        ):
            assert (top / name).stat().st_size, name
        self.assert_is_nudge(top / "nudge")

    def test_cargo_binstall_is_told_where_the_archive_is(self):
        """The address comes from the template in cargo-binstall's documentation."""
        told = tomllib.loads((ROOT / "cli/Cargo.toml").read_text())["package"]["metadata"]["binstall"]
        fields = {"repo": pack.HOME, "version": self.version, "target": TARGET, "bin": "nudge", "binary-ext": ""}
        fields["archive-suffix"] = {"tgz": ".tar.gz", "zip": ".zip"}[told["pkg-fmt"]]
        filled = {
            name: re.sub(r"\{ (.+?) \}", lambda field: fields[field[1]], told[name]) for name in ("pkg-url", "bin-dir")
        }
        archive = self.one("nudge-*.tar.gz")
        assert filled["pkg-url"] in (self.out / "nudge.rb").read_text()
        assert filled["pkg-url"].endswith(archive.name)
        with tarfile.open(archive) as held:
            assert held.getmember(filled["bin-dir"]).isfile()
        zips = {target for target, (_, system, *_) in pack.TARGETS.items() if system == "win32"}
        assert {target for target, of in told["overrides"].items() if of == {"pkg-fmt": "zip"}} == zips

    @unittest.skipUnless(shutil.which("cargo-binstall") and shutil.which("openssl"), "cargo-binstall is not here")
    def test_cargo_binstall(self):
        """Runs the real cargo-binstall with our manifests. Only the host of the repository is replaced, by this
        machine."""
        releases = self.home / f"www/releases/download/v{self.version}"
        releases.mkdir(parents=True)
        shutil.copy(self.one("nudge-*.tar.gz"), releases)
        key, certificate = self.home / "key.pem", self.home / "certificate.pem"
        self.run_it(
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"),
            *("-keyout", key, "-out", certificate),
        )
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Quiet, directory=self.home / "www")
        )
        server.handle_error = lambda *_: None  # The program reads only the beginning of an archive.
        secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        secure.load_cert_chain(certificate, key)
        server.socket = secure.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        for name in self.run_it("git", "-C", ROOT, "ls-files", "Cargo.toml", "*/Cargo.toml").stdout.split():
            copy = self.home / "manifests" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text((ROOT / name).read_text().replace(pack.HOME, f"https://localhost:{server.server_port}"))
        with self.timed("`cargo binstall nudge-cli`", self.one("nudge-*.tar.gz")):
            self.run_it(
                *("cargo-binstall", "nudge-cli", "--manifest-path", self.home / "manifests/cli", "--targets", TARGET),
                *("--disable-strategies", "quick-install,compile", "--root-certificates", certificate),
                *("--no-confirm", "--install-path", self.home / "bin"),
                env={"no_proxy": "localhost"},
            )
            self.assert_serves(self.home / "bin/nudge")
        self.assert_is_nudge(self.home / "bin/nudge")

    def test_wheel(self):
        python, wheel = self.home / "venv/bin/python", self.one("*.whl")
        self.run_it(sys.executable, "-m", "venv", self.home / "venv")
        with self.timed("`pip install nudge-hints-cli`", wheel):
            self.run_it(python, "-m", "pip", "install", "--quiet", "--no-index", wheel)
            self.assert_serves(self.home / "venv/bin/nudge")
        self.assert_is_nudge(self.home / "venv/bin/nudge")
        shown = self.run_it(python, "-m", "pip", "show", "--files", "nudge-hints-cli").stdout
        assert f"Version: {self.version}" in shown
        uvx = ("uvx", "--offline", "--from", wheel, "nudge")
        with self.timed("`uvx --from nudge-hints-cli nudge`", wheel):
            self.assert_serves(*uvx)
        with self.timed("`uvx --from nudge-hints-cli nudge`, again"):
            self.assert_serves(*uvx)
        with self.timed("`pipx install nudge-hints-cli`", wheel):
            self.run_it("pipx", "install", "--quiet", wheel, env={"PIP_NO_INDEX": "1"})
            self.assert_serves(self.home / ".local/bin/nudge")
        self.assert_is_nudge(self.home / ".local/bin/nudge")
        self.run_it(python, "-m", "pip", "uninstall", "--yes", "nudge-hints-cli")
        assert not (self.home / "venv/bin/nudge").exists()

    @unittest.skipUnless(shutil.which("npm"), "npm is not here")
    def test_npm(self):
        platform, main = self.one("npm/nudge-hints-cli-*-*-*.tgz"), self.one(f"npm/nudge-hints-cli-{self.version}.tgz")
        install = ("npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", "--prefix", self.home)
        # Installs the optional package that the registry would choose for this machine.
        self.run_it(*install, "--omit=optional", main, cwd=self.home)
        bare = self.run_it(self.home / "node_modules/.bin/nudge", "--version", check=False)
        assert (bare.returncode, bare.stdout) == (1, "")
        assert "there is no program for" in bare.stderr
        program = self.home / "node_modules/.bin/nudge"
        with self.timed("`npm install nudge-hints-cli`", main, platform):
            self.run_it(*install, "--omit=optional", main, platform, cwd=self.home)
            self.assert_serves(program)
        self.assert_is_nudge(program)
        npx = ("npx", "--offline", "--yes", f"--package={platform}", f"--package={main}", "nudge")
        with self.timed("`npx nudge-hints-cli`", main, platform):
            self.assert_serves(*npx)
        by_npx = self.run_it("npx", "--offline", "nudge-hints-cli", "--version", cwd=self.home).stdout
        assert by_npx == f"nudge {self.version}\n"
        package = json.loads((self.home / "node_modules/nudge-hints-cli/package.json").read_text())
        assert "scripts" not in package, "nothing runs when it is installed"

    @unittest.skipUnless(shutil.which("dpkg-deb"), "dpkg-deb is not here")
    def test_debian(self):
        package = self.one("*.deb")
        self.run_it("dpkg-deb", "--extract", package, self.home / "root")
        self.assert_is_nudge(self.home / "root/usr/bin/nudge")
        fields = self.run_it("dpkg-deb", "--field", package, "Package", "Version").stdout
        assert fields == f"Package: nudge\nVersion: {self.version}\n"
        if os.geteuid() == 0:
            root = self.home / "system"
            (root / "var/lib/dpkg").mkdir(parents=True)
            (root / "var/lib/dpkg/status").touch()
            (root / "var/lib/dpkg/updates").mkdir()
            (root / "var/lib/dpkg/info").mkdir()
            install = ("dpkg", f"--root={root}", "--force-depends", "--force-architecture", "--install", package)
            with self.timed("`dpkg --install nudge.deb`", package):
                self.run_it(*install)
                self.assert_serves(root / "usr/bin/nudge")
            self.run_it("dpkg", f"--root={root}", "--remove", "nudge")
            assert not (root / "usr/bin/nudge").exists()

    def test_bundle(self):
        with self.timed("bundle (`.mcpb`), unpacked as a host does", self.one("*.mcpb")):
            with zipfile.ZipFile(self.one("*.mcpb")) as bundle:
                manifest = json.loads(bundle.read("manifest.json"))
                bundle.extractall(self.home / "bundle")
            command = manifest["server"]["mcp_config"]
            program = pathlib.Path(command["command"].replace("${__dirname}", str(self.home / "bundle")))
            program.chmod(0o755)
            self.assert_serves(program)
        assert program == self.home / "bundle" / manifest["server"]["entry_point"]
        assert command["args"] == ["serve"]

    def test_install_script(self):
        """Installs from a server on this machine that has a release. With a wrong checksum nothing is installed."""
        releases, name = self.home / "releases", f"nudge-{self.version}-{TARGET.replace('-gnu', '-musl')}"
        where = releases / f"download/v{self.version}"
        where.mkdir(parents=True)
        (releases / "latest/download").mkdir(parents=True)
        shutil.copy(self.out / "VERSION", releases / "latest/download/VERSION")
        with tarfile.open(self.one("nudge-*.tar.gz")) as archive:
            archive.extractall(self.home, filter="data")
        (self.home / f"nudge-{self.version}-{TARGET}").rename(self.home / name)
        subprocess.run(["tar", "czf", where / f"{name}.tar.gz", "-C", self.home, name], check=True)
        checksum = where / f"{name}.tar.gz.sha256"
        with open(checksum, "w") as file:
            subprocess.run(["sha256sum", f"{name}.tar.gz"], cwd=where, stdout=file, check=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=releases))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        env = {"NUDGE_RELEASES": f"http://127.0.0.1:{server.server_port}", "no_proxy": "127.0.0.1"}
        script = ROOT / "cli/package/install.sh"
        program = self.home / ".local/bin/nudge"
        with self.timed("install script", where / f"{name}.tar.gz"):
            said = self.run_it("sh", script, env=env).stdout
            self.assert_serves(program)
        assert f"nudge {self.version} is in {self.home}/.local/bin" in said
        assert "is not on your PATH" in said
        self.assert_is_nudge(program)
        program.write_text("the one before")
        checksum.write_text(checksum.read_text().replace(checksum.read_text()[:8], "00000000"))
        refused = self.run_it("sh", script, env=env, check=False)
        assert refused.returncode == 1
        assert "checksum" in refused.stderr
        assert program.read_text() == "the one before"
        missing = self.run_it("sh", script, env={**env, "NUDGE_VERSION": "9.9.9"}, check=False)
        assert missing.returncode == 1
        assert "cannot be fetched" in missing.stderr

    @unittest.skipUnless(LIBRARIES, "run --libraries")
    def test_library_of_python(self):
        python, wheel = self.home / "venv/bin/python", self.one("*.whl", pathlib.Path(LIBRARIES))
        self.run_it(sys.executable, "-m", "venv", self.home / "venv")
        with self.timed("Python: `pip install nudge-hints`", wheel):
            self.run_it(python, "-m", "pip", "install", "--quiet", "--no-index", wheel)
            assert self.run_it(python, ROOT / "examples/python/agent.py").stdout == STORY

    @unittest.skipUnless(LIBRARIES, "run --libraries")
    def test_library_of_node(self):
        main = pathlib.Path(LIBRARIES) / f"nudge-hints-{self.version}.tgz"
        (platform,) = {*main.parent.glob("nudge-hints-*.tgz")} - {main}
        install = ("npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", "--omit=optional")
        shutil.copy(ROOT / "examples/node/agent.js", self.home / "agent.mjs")
        with self.timed("Node: `npm install nudge-hints`", main, platform):
            self.run_it(*install, main, platform, cwd=self.home)
            assert self.run_it("node", "agent.mjs", cwd=self.home).stdout == STORY

    @unittest.skipUnless(LIBRARIES, "run --libraries")
    def test_library_of_c(self):
        prefix = pathlib.Path(LIBRARIES) / "prefix"
        library, story = (prefix / "lib/libnudge.so").resolve(), ROOT / "examples/c/story.c"
        with self.timed("C: `cc` with pkg-config", library):
            flags = self.run_it(
                *("pkg-config", "--cflags", "--libs", "nudge"), env={"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
            ).stdout.split()
            self.run_it("cc", "-std=c11", story, *flags, f"-Wl,-rpath,{prefix}/lib", "-o", self.home / "story")
            assert self.run_it(self.home / "story").stdout == STORY
        with self.timed("C: CMake", library):
            build = self.home / "build"
            self.run_it("cmake", "-S", ROOT / "examples/c", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
            self.run_it("cmake", "--build", build)
            assert self.run_it(build / "story").stdout == STORY

    def test_checksums_are_those_of_the_packages(self):
        sums = (self.out / "SHA256SUMS").read_text().splitlines()
        assert len(sums) >= 6
        for line in sums:
            expected, name = line.split("  ")
            path = next(path for path in self.out.rglob(name))
            assert self.run_it("sha256sum", path).stdout.split()[0] == expected
        formula = (self.out / "nudge.rb").read_text()
        archive = self.one("nudge-*.tar.gz")
        assert self.run_it("sha256sum", archive).stdout.split()[0] in formula
        assert archive.name in formula
        entry = json.loads((self.out / "server.json").read_text())
        assert entry["version"] == self.version

    def test_the_same_binary_makes_the_same_bytes(self):
        again = self.home / "again"
        self.run_it(sys.executable, ROOT / "cli/package/pack.py", BINARY, TARGET, again)
        for path in (self.one("nudge-*.tar.gz"), self.one("*.whl"), self.one("*.mcpb")):
            assert (again / path.name).read_bytes() == path.read_bytes(), path.name

    def test_the_version_is_one(self):
        for path, text in (
            ("bindings/node/package.json", f'"version": "{self.version}"'),
            ("cli/plugin/.claude-plugin/plugin.json", f'"version": "{self.version}"'),
            ("Cargo.toml", f'version = "{self.version}"'),
        ):
            assert text in (ROOT / path).read_text(), path


if __name__ == "__main__":
    unittest.main()
