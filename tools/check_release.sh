#!/usr/bin/env bash
# Checks what `tools/release.sh OUT` wrote, as somebody who downloads it would:
#
#     tools/check_release.sh [OUT] [--no-sdist]      OUT: target/release-files unless given
#
# The checksums; the software bill of materials; the archive's binary, completions and manual pages; that neither the binary
# nor the wheel names folders of the machine that built it; the files of the .deb and its systemd unit
# (`systemd-analyze verify`, and its exposure by `systemd-analyze security`, which must stay below 3 of 10); the wheel in a
# clean environment; the sdist, from which pip builds a wheel in another one (--no-sdist leaves out that compilation).
# `tools/check_deb.sh` installs the .deb and starts its service.
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/release-files sdist=yes
for argument in "$@"; do
  case $argument in --no-sdist) sdist=no ;; *) out=$argument ;; esac
done
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "== checksums"
(cd "$out" && sha256sum --quiet -c SHA256SUMS)
for file in "$out"/*; do
  name=$(basename "$file")
  [ "$name" = SHA256SUMS ] || grep -q "  $name\$" "$out/SHA256SUMS" || { echo "$name has no checksum" >&2; exit 1; }
done

echo "== the software bill of materials"
python3 - "$out"/*.cdx.json <<'SBOM'
import json, sys
bom = json.load(open(sys.argv[1]))
names = {component["name"] for component in bom["components"]}
assert bom["bomFormat"] == "CycloneDX" and bom["specVersion"] == "1.5"
assert {"regard-core", "tokio", "rustls", "tokenizers"} <= names and "tempfile" not in names, sorted(names)
assert all(component["licenses"] and component["purl"] for component in bom["components"])
print(f"{len(names)} packages")
SBOM

echo "== the archive"
# Of the two archives the sdist has no system in its name.
for file in "$out"/*.tar.gz; do
  case $file in *-linux-* | *-darwin* | *-windows-*) binaries=$file ;; *) sources=$file ;; esac
done
tar -xzf "$binaries" -C "$work"
archive=$work/$(basename "$binaries" .tar.gz)
for file in README.md SECURITY.md LICENSE-MIT LICENSE-APACHE regard.service completions/{regard.bash,_regard,regard.fish} man/regard{,-translate,-serve}.1; do
  [ -s "$archive/$file" ] || { echo "the archive lacks $file" >&2; exit 1; }
done
bash -n "$archive/completions/regard.bash"
if nm "$archive/regard" 2>/dev/null | grep -q .; then echo "the binary is not stripped" >&2; exit 1; fi
version=$("$archive/regard" --version)
echo "$version"

# Fails if a program has the path of a folder of the machine that built it.
check_paths() {
  if strings -n 8 "$1" | grep -F -e "$HOME/" -e /.cargo/ -e /registry/src/ | head -5 | grep .; then
    echo "$1 names folders of the machine that built it" >&2
    exit 1
  fi
}
check_paths "$archive/regard"

if command -v dpkg-deb >/dev/null; then
  echo "== the Debian package"
  dpkg-deb --info "$out"/*.deb | grep -E ' (Version|Depends):'
  dpkg-deb --extract "$out"/*.deb "$work/deb"
  dpkg-deb --control "$out"/*.deb "$work/control"
  sh -n "$work/control/postinst" && sh -n "$work/control/prerm" && sh -n "$work/control/postrm"
  cmp "$work/deb/usr/bin/regard" "$archive/regard"
  [ -s "$work/deb/usr/share/man/man1/regard-serve.1.gz" ] && [ -s "$work/deb/etc/regard/serve.toml" ]
  # The unit's settings are ones that the program knows: it gets as far as the model, which is not there.
  refused=$("$archive/regard" serve --config "$work/deb/etc/regard/serve.toml" 2>&1 || true)
  case $refused in *"/var/lib/regard/model"*) ;; *) echo "$refused" >&2; exit 1 ;; esac
  if command -v systemd-analyze >/dev/null; then
    unit=$work/regard.service
    # The command of the unit must exist for `verify`.
    sed "s|^ExecStart=/usr/bin/regard|ExecStart=$work/deb/usr/bin/regard|" "$work/deb/usr/lib/systemd/system/regard.service" >"$unit"
    systemd-analyze verify --man=no "$unit" 2>&1 | grep -F regard.service && exit 1
    exposure=$(systemd-analyze security --no-pager --offline=true --threshold=30 "$unit" | tail -1)
    echo "$exposure"
  else
    echo "systemd-analyze is not installed: the unit was not verified"
  fi
fi

check_wheel() {
  "$1/bin/regard" --version | grep -qxF "$version"
  "$1/bin/python" -c 'import regard; print(regard.__version__, regard.metrics.bleu(["a b c d e"], ["a b c d e"]).score)'
}
echo "== the wheel"
python3 -m venv "$work/wheel"
"$work/wheel/bin/pip" install -q "$out"/*.whl
(cd "$work" && check_wheel "$work/wheel")
for library in "$work"/wheel/lib/python3*/site-packages/regard/_regard*; do check_paths "$library"; done

if [ $sdist = yes ]; then
  echo "== a wheel from the sdist"
  python3 -m venv "$work/sdist"
  "$work/sdist/bin/pip" install -q "$sources"
  (cd "$work" && check_wheel "$work/sdist")
fi
echo "the release is sound"
