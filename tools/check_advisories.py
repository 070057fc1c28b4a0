#!/usr/bin/env python3
"""Checks Cargo.lock against a local copy of https://github.com/rustsec/advisory-db, offline.

    git clone https://github.com/rustsec/advisory-db
    python3 tools/check_advisories.py advisory-db [LOCK...]

Without LOCK, it checks the two lock files of the repository. Vulnerabilities and unsound code are
errors; crates that are only unmaintained are listed. deny.toml names the advisories that do not
affect us ([advisories] ignore), as for `cargo deny check advisories`, which does the same with a
network.
"""
import pathlib, re, sys, tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def numbers(version):
    """A sortable form of a version: its numbers, with a pre-release below the release."""
    core, _, pre = version.split("+")[0].partition("-")
    parts = [int(part) for part in core.split(".")]
    known = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split(".")] if pre else []
    return parts + [0] * (3 - len(parts)), not pre, known


def meets(version, requirement):
    """Whether a version meets a requirement such as `>= 0.22.4, < 0.23.0` or `^1.2`."""
    found = numbers(version)
    for comparator in requirement.split(","):
        sign, wanted = re.fullmatch(r"\s*(>=|<=|>|<|=|\^|~)?\s*(\S+)\s*", comparator).groups()
        if wanted == "*":
            continue
        given = wanted.split("-")[0].split("+")[0].split(".")
        low = numbers(wanted)
        if sign in (">=", "<=", ">", "<", "="):
            holds = {">=": found >= low, "<=": found <= low, ">": found > low, "<": found < low, "=": found == low}
            if not holds[sign]:
                return False
            continue
        # ^ and no operator keep the first non-zero number; ~ keeps the minor version.
        kept = [i for i, part in enumerate(given) if int(part) > 0][:1] or [len(given) - 1]
        at = min(1, len(given) - 1) if sign == "~" else kept[0]
        above = low[0][: at + 1]
        above[-1] += 1
        if found < low or found[0] >= above + [0] * (3 - len(above)):
            return False
    return True


def affects(advisory, version):
    versions = advisory.get("versions", {})
    safe = versions.get("patched", []) + versions.get("unaffected", [])
    return not any(meets(version, requirement) for requirement in safe)


def check():
    """Tests the version rules on cases with known answers."""
    for version, requirement, wanted in [
        ("0.23.46", ">= 0.23.5", True), ("0.22.9", ">= 0.22.4, < 0.23.0", True), ("0.23.0", ">= 0.22.4, < 0.23.0", False),
        ("1.2.9", "^1.2.3", True), ("2.0.0", "^1.2.3", False), ("0.2.9", "^0.2.3", True), ("0.3.0", "^0.2.3", False),
        ("0.0.4", "^0.0.3", False), ("1.2.9", "~1.2", True), ("1.3.0", "~1.2", False), ("1.0.0-alpha.2", ">= 1.0.0", False),
        ("1.0.0-alpha.10", "> 1.0.0-alpha.2", True), ("1.0.0", "1", True), ("3.0.0", "*", True), ("0.10.1", ">= 0.9.2", True),
    ]:
        assert meets(version, requirement) == wanted, (version, requirement)


def main():
    check()
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]) / "crates"
    if not folder.is_dir():
        sys.exit(f"{folder}: no such folder; it needs a copy of rustsec/advisory-db")
    locks = [pathlib.Path(lock) for lock in sys.argv[2:]] or [ROOT / "Cargo.lock", ROOT / "fuzz/Cargo.lock"]
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    ignored = set(rules["advisories"]["ignore"])
    advisories, read = {}, 0
    for path in folder.glob("*/RUSTSEC-*.md"):
        advisory = tomllib.loads(path.read_text().split("```toml", 1)[1].split("```", 1)[0])
        if "withdrawn" not in advisory["advisory"]:
            advisories.setdefault(advisory["advisory"]["package"], []).append(advisory)
            read += 1
    errors, notes, met = set(), set(), set()
    packages = set()
    for lock in locks:
        for package in tomllib.loads(lock.read_text())["package"]:
            if "source" in package:
                packages.add((package["name"], package["version"]))
    for name, version in sorted(packages):
        for advisory in advisories.get(name, []):
            if not affects(advisory, version):
                continue
            about = advisory["advisory"]
            line = f"{name} {version}: {about['id']} ({about.get('informational', 'vulnerability')})"
            if about["id"] in ignored:
                met.add(about["id"])
            elif about.get("informational") in ("unmaintained", "notice"):
                notes.add(line)
            else:
                errors.add(line)
    errors |= {f"deny.toml ignores {name}, which concerns no package" for name in ignored - met}
    print("\n".join(sorted(notes | errors)))
    print(f"{len(packages)} packages, {read} advisories, {len(errors)} errors, {len(notes)} unmaintained, {len(met)} ignored")
    return 1 if errors else 0


sys.exit(main())
