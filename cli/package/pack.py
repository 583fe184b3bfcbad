"""Makes every package of one built binary: pack.py BINARY TARGET OUT

TARGET is a Rust target triple, such as x86_64-unknown-linux-gnu. OUT gets, all of the version that BINARY tells:

    nudge-VERSION-TARGET.tar.gz (.zip on Windows)   binary, completions, man pages, licences, service units; for the
                                                    install script, `cargo binstall` and Homebrew
    nudge_hints_cli-VERSION-*.whl                   for `uvx --from nudge-hints-cli nudge` and `pipx install`
    npm/nudge-hints-cli-OS-CPU.tgz, npm/nudge-hints-cli.tgz   for `npx nudge-hints-cli`
    nudge_VERSION_ARCH.deb                          on Linux, where dpkg-deb is
    nudge-VERSION-TARGET.mcpb                       a bundle for hosts that install MCP servers by a click
    nudge.rb, server.json                           Homebrew's formula, the entry of the MCP registry
    SHA256SUMS                                      of all of these

Needs Python 3.11, and npm for the npm packages. Downloads nothing. .github/RELEASING.md says when it is called.
"""

import base64
import hashlib
import io
import json
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOME = "https://github.com/nudge-hints/nudge"
SUMMARY = "A memory for coding agents: the right fact, in the right place, at the right moment, with the reason why"
LICENSE = "MIT OR Apache-2.0"
# target: (tag of a wheel, system and processor as npm has them, architecture of Debian)
TARGETS = {
    # Linked to the C library of the machine that built it, so for machines like that one; what is handed out is not.
    "x86_64-unknown-linux-gnu": ("linux_x86_64", "linux", "x64", "amd64"),
    "aarch64-unknown-linux-gnu": ("linux_aarch64", "linux", "arm64", "arm64"),
    "x86_64-unknown-linux-musl": ("manylinux2014_x86_64.musllinux_1_1_x86_64", "linux", "x64", "amd64"),
    "aarch64-unknown-linux-musl": ("manylinux2014_aarch64.musllinux_1_1_aarch64", "linux", "arm64", "arm64"),
    "x86_64-apple-darwin": ("macosx_10_12_x86_64", "darwin", "x64", None),
    "aarch64-apple-darwin": ("macosx_11_0_arm64", "darwin", "arm64", None),
    "x86_64-pc-windows-msvc": ("win_amd64", "win32", "x64", None),
    "aarch64-pc-windows-msvc": ("win_arm64", "win32", "arm64", None),
}
# Programs for which there are packages, by system and processor as npm has them.
NPM_PLATFORMS = sorted({f"{system}-{cpu}" for _, system, cpu, _ in TARGETS.values()})
# The time that files in packages have, so that the same binary makes the same bytes.
EPOCH = 1_767_225_600
EXECUTABLE, PLAIN = 0o755, 0o644


class Package:
    def __init__(self, binary, target, out):
        if target not in TARGETS:
            raise SystemExit(f"no package is made for {target}; one of: {', '.join(TARGETS)}")
        self.binary, self.target, self.out = pathlib.Path(binary).resolve(), target, pathlib.Path(out).resolve()
        self.wheel_tag, self.system, self.cpu, self.debian = TARGETS[target]
        self.name = "nudge.exe" if self.system == "win32" else "nudge"
        self.version = self.tell("--version").split()[-1]
        self.bytes = self.binary.read_bytes()
        self.out.mkdir(parents=True, exist_ok=True)

    def tell(self, *words):
        return subprocess.run([self.binary, *words], capture_output=True, text=True, check=True).stdout

    def all(self):
        archive = self.archive()
        made = [archive, self.wheel(), *self.npm(), self.deb(), self.bundle()]
        made += [self.formula(archive), self.registry_entry(made[-1])]
        (self.out / "VERSION").write_text(f"{self.version}\n")
        made = [path for path in made if path]
        lines = [f"{sha256(path)}  {path.name}\n" for path in sorted(made, key=lambda path: path.name)]
        (self.out / "SHA256SUMS").write_text("".join(lines))
        return made

    # What the packages hold

    def manual(self):
        with tempfile.TemporaryDirectory() as folder:
            self.tell("man", folder)
            return {path.name: path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())}

    def completions(self):
        names = {"bash": "nudge.bash", "zsh": "_nudge", "fish": "nudge.fish", "powershell": "nudge.ps1"}
        return {name: self.tell("completions", shell).encode() for shell, name in names.items()}

    def papers(self):
        return {name: (ROOT / name).read_bytes() for name in ("LICENSE-MIT", "LICENSE-APACHE", "README.md")}

    def units(self):
        return {path.name: path.read_bytes() for path in sorted((HERE / "units").iterdir())}

    # The packages

    def archive(self):
        top = f"nudge-{self.version}-{self.target}"
        files = {f"{top}/{self.name}": (self.bytes, EXECUTABLE)}
        for folder, held in (("completions", self.completions()), ("man", self.manual()), ("units", self.units())):
            files |= {f"{top}/{folder}/{name}": (data, PLAIN) for name, data in held.items()}
        files |= {f"{top}/{name}": (data, PLAIN) for name, data in self.papers().items()}
        if self.system == "win32":
            path = self.out / f"{top}.zip"
            path.write_bytes(zipped(files))
        else:
            path = self.out / f"{top}.tar.gz"
            path.write_bytes(tarred(files))
        path.with_name(path.name + ".sha256").write_text(f"{sha256(path)}  {path.name}\n")
        return path

    def wheel(self):
        dist = f"nudge_hints_cli-{self.version}"
        info = f"{dist}.dist-info"
        tags = [f"py3-none-{tag}" for tag in self.wheel_tag.split(".")]
        metadata = (
            f"Metadata-Version: 2.4\nName: nudge-hints-cli\nVersion: {self.version}\nSummary: {SUMMARY}\n"
            f"License-Expression: {LICENSE}\nLicense-File: LICENSE-MIT\nLicense-File: LICENSE-APACHE\n"
            f"Project-URL: Repository, {HOME}\nDescription-Content-Type: text/markdown\n\n"
        )
        wheel = "Wheel-Version: 1.0\nGenerator: pack.py\nRoot-Is-Purelib: false\n"
        files = {
            f"{dist}.data/scripts/{self.name}": (self.bytes, EXECUTABLE),
            f"{info}/METADATA": (metadata.encode() + (ROOT / "README.md").read_bytes(), PLAIN),
            f"{info}/WHEEL": ((wheel + "".join(f"Tag: {tag}\n" for tag in tags)).encode(), PLAIN),
        }
        files |= {f"{info}/licenses/{name}": (self.papers()[name], PLAIN) for name in ("LICENSE-MIT", "LICENSE-APACHE")}
        record = "".join(f"{name},sha256={urlsafe(data)},{len(data)}\n" for name, (data, _) in files.items())
        files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), PLAIN)
        path = self.out / f"{dist}-py3-none-{self.wheel_tag}.whl"
        path.write_bytes(zipped(files))
        return path

    def npm(self):
        if not shutil.which("npm"):
            print("npm is not here: no npm packages", file=sys.stderr)
            return []
        platform = f"{self.system}-{self.cpu}"
        common = {"version": self.version, "license": LICENSE, "repository": {"type": "git", "url": f"git+{HOME}.git"}}
        # The one for a platform: the binary alone.
        own = {
            "name": f"nudge-hints-cli-{platform}",
            "description": f"The program of nudge-hints-cli for {platform}",
            "os": [self.system],
            "cpu": [self.cpu],
            "files": [self.name],
            **common,
        }
        # The one that people name: a few lines that start what fits this machine.
        main = {
            "name": "nudge-hints-cli",
            "description": SUMMARY,
            "bin": {"nudge": "nudge.js", "nudge-hints-cli": "nudge.js"},
            "files": ["nudge.js"],
            "engines": {"node": ">=20"},
            "optionalDependencies": {f"nudge-hints-cli-{name}": self.version for name in NPM_PLATFORMS},
            **common,
        }
        script = (HERE / "npm" / "nudge.js").read_bytes()
        papers = {name: (data, PLAIN) for name, data in self.papers().items()}
        return [
            self.npm_pack(own, {self.name: (self.bytes, EXECUTABLE), **papers}),
            self.npm_pack(main, {"nudge.js": (script, EXECUTABLE), **papers}),
        ]

    def npm_pack(self, package, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, (data, mode) in files.items():
                path = pathlib.Path(folder) / name
                path.write_bytes(data)
                path.chmod(mode)
            (pathlib.Path(folder) / "package.json").write_text(json.dumps(package, indent=2) + "\n")
            (self.out / "npm").mkdir(exist_ok=True)
            pack = ["npm", "pack", "--silent", "--pack-destination", str(self.out / "npm")]
            packed = subprocess.run(pack, cwd=folder, capture_output=True, text=True, check=True).stdout.split()[-1]
        return self.out / "npm" / packed

    def deb(self):
        if self.debian is None or not shutil.which("dpkg-deb"):
            return None
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            top.chmod(0o755)
            held = {"usr/bin/nudge": (self.bytes, EXECUTABLE)}
            held |= {f"usr/share/man/man1/{name}": (data, PLAIN) for name, data in self.manual().items()}
            places = {
                "nudge.bash": "usr/share/bash-completion/completions/nudge",
                "_nudge": "usr/share/zsh/vendor-completions/_nudge",
                "nudge.fish": "usr/share/fish/vendor_completions.d/nudge.fish",
            }
            held |= {places[name]: (data, PLAIN) for name, data in self.completions().items() if name in places}
            held["usr/lib/systemd/user/nudge.service"] = (self.units()["nudge.service"], PLAIN)
            held["usr/share/doc/nudge/copyright"] = (
                b"".join(self.papers()[f"LICENSE-{n}"] for n in ("MIT", "APACHE")),
                PLAIN,
            )
            size = sum(len(data) for data, _ in held.values()) // 1024
            control = (
                f"Package: nudge\nVersion: {self.version}\nArchitecture: {self.debian}\n"
                f"Maintainer: The Nudge authors <nudge@users.noreply.github.com>\nInstalled-Size: {size}\n"
                f"Section: devel\nPriority: optional\nHomepage: {HOME}\n"
                f"Description: {SUMMARY.split(':')[0]}\n {SUMMARY}.\n"
            )
            held["DEBIAN/control"] = (control.encode(), PLAIN)
            for name, (data, mode) in held.items():
                path = top / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                path.chmod(mode)
            for path in top.rglob("*"):
                if path.is_dir():
                    path.chmod(0o755)
            path = self.out / f"nudge_{self.version}_{self.debian}.deb"
            make = ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(top), str(path)]
            subprocess.run(make, capture_output=True, check=True)
        return path

    def bundle(self):
        manifest = {
            "manifest_version": "0.3",
            "name": "nudge",
            "display_name": "Nudge",
            "version": self.version,
            "description": SUMMARY,
            "author": {"name": "The Nudge authors", "url": HOME},
            "license": LICENSE,
            "repository": {"type": "git", "url": f"{HOME}.git"},
            "server": {
                "type": "binary",
                "entry_point": f"server/{self.name}",
                "mcp_config": {"command": f"${{__dirname}}/server/{self.name}", "args": ["serve"], "env": {}},
            },
            "tools_generated": True,
            "compatibility": {"platforms": [self.system]},
        }
        files = {
            "manifest.json": (json.dumps(manifest, indent=2).encode() + b"\n", PLAIN),
            f"server/{self.name}": (self.bytes, EXECUTABLE),
        }
        files |= {name: (data, PLAIN) for name, data in self.papers().items()}
        path = self.out / f"nudge-{self.version}-{self.target}.mcpb"
        path.write_bytes(zipped(files))
        return path

    def formula(self, archive):
        text = (HERE / "nudge.rb").read_text()
        address = f"{HOME}/releases/download/v{self.version}/{archive.name}"
        path = self.out / "nudge.rb"
        path.write_text(text.replace("@URL@", address).replace("@SHA256@", sha256(archive)))
        return path

    def registry_entry(self, bundle):
        entry = {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-10-17/server.schema.json",
            "name": "io.github.nudge-hints/nudge",
            "description": "A memory for coding agents: the right fact, at the right moment, with the reason why",
            "repository": {"url": HOME, "source": "github"},
            "version": self.version,
            "packages": [
                {
                    "registryType": "npm",
                    "identifier": "nudge-hints-cli",
                    "version": self.version,
                    "transport": {"type": "stdio"},
                    "packageArguments": [{"type": "positional", "value": "serve"}],
                },
                {
                    "registryType": "mcpb",
                    "identifier": f"{HOME}/releases/download/v{self.version}/{bundle.name}",
                    "fileSha256": sha256(bundle),
                    "transport": {"type": "stdio"},
                },
            ],
        }
        path = self.out / "server.json"
        path.write_text(json.dumps(entry, indent=2) + "\n")
        return path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def urlsafe(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as into:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            into.writestr(entry, data)
    return out.getvalue()


def tarred(files):
    import gzip

    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as into:
        for name, (data, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), mode, EPOCH
            into.addfile(entry, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), compresslevel=6, mtime=EPOCH)


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    for path in Package(*sys.argv[1:]).all():
        print(path)


if __name__ == "__main__":
    main()
