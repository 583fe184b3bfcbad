#!/bin/sh
# Installs a released `nudge` for this machine: into NUDGE_INSTALL_DIR, else ~/.local/bin. NUDGE_VERSION names a release
# (the latest otherwise), NUDGE_RELEASES another address of the archives. Nothing is installed whose checksum differs.
set -eu

releases=${NUDGE_RELEASES:-https://github.com/nudge-hints/nudge/releases}
into=${NUDGE_INSTALL_DIR:-$HOME/.local/bin}

fail() {
  echo "nudge was not installed: $*" >&2
  exit 1
}

fetch() { # ADDRESS FILE
  curl --fail --silent --show-error --location --output "$2" "$1" || fail "$1 cannot be fetched"
}

case $(uname -s) in
  Linux) system=unknown-linux-musl ;;
  Darwin) system=apple-darwin ;;
  *) fail "there is no archive for $(uname -s); use \`cargo install --locked nudge-cli\`" ;;
esac
case $(uname -m) in
  x86_64 | amd64) cpu=x86_64 ;;
  arm64 | aarch64) cpu=aarch64 ;;
  *) fail "there is no archive for $(uname -m); use \`cargo install --locked nudge-cli\`" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

version=${NUDGE_VERSION:-}
if [ -z "$version" ]; then
  fetch "$releases/latest/download/VERSION" "$work/VERSION"
  version=$(cat "$work/VERSION")
fi
name=nudge-$version-$cpu-$system
fetch "$releases/download/v$version/$name.tar.gz" "$work/$name.tar.gz"
fetch "$releases/download/v$version/$name.tar.gz.sha256" "$work/$name.tar.gz.sha256"

expected=$(cut -d ' ' -f 1 "$work/$name.tar.gz.sha256")
if command -v sha256sum >/dev/null; then
  found=$(sha256sum "$work/$name.tar.gz" | cut -d ' ' -f 1)
else
  found=$(shasum -a 256 "$work/$name.tar.gz" | cut -d ' ' -f 1)
fi
[ "$found" = "$expected" ] || fail "the checksum of $name.tar.gz is $found and should be $expected"

tar xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$into"
# A server that runs keeps its own file.
cp "$work/$name/nudge" "$into/.nudge.new"
chmod 755 "$into/.nudge.new"
mv -f "$into/.nudge.new" "$into/nudge"
echo "nudge $version is in $into; \`nudge init\` puts it into your coding agents"
case ":$PATH:" in
  *":$into:"*) ;;
  *) echo "$into is not on your PATH; add it there" ;;
esac
