#!/usr/bin/env bash
# Builds what is published, from a clean clone of the last commit:
#
#     tools/release.sh [OUT]       OUT: target/release-files unless given
#
# regard-VERSION-TARGET.tar.gz (binary, completions, manual pages, licences, systemd unit), regard_VERSION_ARCH.deb, the wheel
# and the sdist of the Python package, regard-VERSION-TARGET.cdx.json (the software bill of materials), SHA256SUMS. Prints size
# and start-up time of the binary and the glibc that it needs. `tools/check_release.sh OUT` tries them, `tools/check_deb.sh`
# installs and starts the .deb.
# Needs the Rust toolchain, Python 3 with venv, dpkg-deb for the .deb, and a package index for maturin.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-target/release-files}" && cd "${1:-target/release-files}" && pwd)
# The compiled dependencies are kept; the sources are those of the commit.
target=${CARGO_TARGET_DIR:-$PWD/target}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q --no-hardlinks . "$work/source"
cd "$work/source"
export CARGO_TARGET_DIR=$target
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
host=$(rustc -vV | sed -n 's/^host: //p')
# Only what an earlier run left: the folder may be somebody's.
rm -f "$out"/regard[-_]*.{tar.gz,deb,whl,cdx.json} "$out/SHA256SUMS"

# Messages of panics name source files: those of dependencies without the folders of this machine. The flags are the same in
# every run, so that the compiled dependencies are kept.
cargo fetch -q --locked
for sources in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$sources=/cargo"; done
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$target=/target"

echo "== the binary"
# With both packages selected, the wheel compiles none of the common dependencies again.
cargo build -q --profile dist --locked -p regard -p regard-python --bin regard
name=regard-$version-$host
mkdir -p "$work/$name"/{completions,man}
install -m 755 "$target/dist/regard" "$work/$name/regard"
strip "$work/$name/regard"
regard=$work/$name/regard
"$regard" completions bash >"$work/$name/completions/regard.bash"
"$regard" completions zsh >"$work/$name/completions/_regard"
"$regard" completions fish >"$work/$name/completions/regard.fish"
"$regard" man --out "$work/$name/man"
echo "== the software bill of materials"
python3 tools/sbom.py "$out/$name.cdx.json"
cp README.md CHANGELOG.md SECURITY.md LICENSE-MIT LICENSE-APACHE packaging/regard.service packaging/serve.toml "$work/$name"
# The same files give the same archive.
tar --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 --numeric-owner -C "$work" -czf "$out/$name.tar.gz" "$name"

if command -v dpkg-deb >/dev/null; then
  echo "== the Debian package"
  root=$work/deb
  mkdir -p "$root"/{DEBIAN,etc/regard,usr/bin,usr/lib/systemd/system,usr/share/man/man1,usr/share/doc/regard}
  mkdir -p "$root"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
  install -m 755 "$regard" "$root/usr/bin/regard"
  install -m 644 packaging/regard.service "$root/usr/lib/systemd/system/regard.service"
  install -m 644 packaging/serve.toml "$root/etc/regard/serve.toml"
  install -m 644 "$work/$name/completions/regard.bash" "$root/usr/share/bash-completion/completions/regard"
  install -m 644 "$work/$name/completions/_regard" "$root/usr/share/zsh/vendor-completions/_regard"
  install -m 644 "$work/$name/completions/regard.fish" "$root/usr/share/fish/vendor_completions.d/regard.fish"
  for page in "$work/$name"/man/*; do gzip -9n <"$page" >"$root/usr/share/man/man1/$(basename "$page").gz"; done
  gzip -9n <CHANGELOG.md >"$root/usr/share/doc/regard/changelog.gz"
  { echo "MIT or Apache-2.0, as you like."; echo; cat LICENSE-MIT; echo; echo "Apache-2.0: /usr/share/common-licenses/Apache-2.0"; } \
    >"$root/usr/share/doc/regard/copyright"
  cat >"$root/DEBIAN/control" <<CONTROL
Package: regard
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: The Regard project <regard@localhost>
Section: text
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: libc6 (>= $(objdump -T "$regard" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -1)), libgcc-s1, adduser
Description: translation Transformers on the CPU: train, run and serve
 One program that trains a tokenizer and a model on parallel text, translates, evaluates, shows what the model attends to, and
 serves translations over HTTP with LibreTranslate's API. The service regard.service is installed but not started: name a
 model in /etc/regard/serve.toml first.
CONTROL
  echo /etc/regard/serve.toml >"$root/DEBIAN/conffiles"
  cat >"$root/DEBIAN/postinst" <<'POSTINST'
#!/bin/sh
set -e
if [ "$1" = configure ]; then
  adduser --system --group --quiet --home /var/lib/regard --no-create-home regard
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    # After an upgrade, what runs is the new program; a service that does not run stays so.
    systemctl try-restart regard.service || true
  fi
fi
POSTINST
  cat >"$root/DEBIAN/prerm" <<'PRERM'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --now regard.service || true; fi
PRERM
  cat >"$root/DEBIAN/postrm" <<'POSTRM'
#!/bin/sh
set -e
# Models and keys in /var/lib/regard, and the user that owns them, are left.
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
POSTRM
  chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm" "$root/DEBIAN/postrm"
  dpkg-deb --root-owner-group -Zxz --build "$root" "$out/regard_${version}_$(dpkg --print-architecture).deb" >/dev/null
fi

echo "== the wheel and the sdist"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'maturin>=1.9.4,<2'
"$work/venv/bin/maturin" build -q --profile dist --locked -m crates/python/Cargo.toml --out "$out"
# It has no flag that keeps it quiet, and repeats what `cargo package` thinks of every crate.
"$work/venv/bin/maturin" sdist -m crates/python/Cargo.toml --out "$out" 2>"$work/sdist.log" || { cat "$work/sdist.log" >&2; exit 1; }

cd "$out"
sha256sum -- regard[-_]* >SHA256SUMS
echo "== what there is"
ls -l
printf 'binary: %s bytes, needs glibc %s\n' "$(stat -c %s "$regard")" \
  "$(objdump -T "$regard" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -1)"
python3 - "$regard" <<'TIME'
import statistics, subprocess, sys, time
def start():
    before = time.perf_counter()
    subprocess.run([sys.argv[1], "--version"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - before
print(f"start-up: {1e3 * statistics.median(start() for _ in range(21)):.1f} ms (median of 21 runs of --version)")
TIME
