#!/usr/bin/env python3
"""Checks the licences, names and sources of all dependencies against deny.toml, offline.

    python3 tools/check_dependencies.py

It reads `cargo metadata` of the workspace and downloads nothing. A build has downloaded the
packages of its features for this platform, and those are always checked; after `cargo fetch`, all
features on all platforms are checked.
"""
import json, pathlib, re, subprocess, sys, tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def allowed(expression, allow):
    """Whether the licences in `allow` satisfy an SPDX expression; old manifests write `/` for
    OR."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    at = 0

    def licence():
        nonlocal at
        if tokens[at] == "(":
            at += 1
            value = alternatives()
            at += 1
            return value
        name = tokens[at]
        at += 1
        if at < len(tokens) and tokens[at] == "WITH":
            name, at = f"{name} WITH {tokens[at + 1]}", at + 2
        return name in allow

    def both():
        nonlocal at
        value = licence()
        while at < len(tokens) and tokens[at] == "AND":
            at += 1
            value = licence() and value
        return value

    def alternatives():
        nonlocal at
        value = both()
        while at < len(tokens) and tokens[at] == "OR":
            at += 1
            value = both() or value
        return value

    return alternatives()


def fetched_packages():
    """The packages of all features and platforms that have been downloaded, and which those are."""
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = ["--filter-platform", re.search(r"^host: (.+)$", version, re.M)[1]]
    for arguments, which in [
        (["--all-features"], "all features on all platforms"),
        (["--all-features", *host], "all features on this platform"),
        (host, "the default features on this platform"),
    ]:
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline", *arguments]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if result.returncode == 0:
            return json.loads(result.stdout)["packages"], which
    sys.exit(result.stderr)


def main():
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    allow, deny = set(rules["licenses"]["allow"]), set(rules["bans"]["deny"])
    packages, which = fetched_packages()
    wrong, used = [], set()
    for package in packages:
        name = f"{package['name']} {package['version']}"
        licence = package["license"] or ""
        if not licence or not allowed(licence, allow):
            wrong.append(f"{name}: licence {licence or 'unknown'!r} is not allowed by deny.toml")
        used |= {l for l in allow if re.search(rf"(?<![\w.-]){re.escape(l)}(?![\w.-])", licence)}
        if package["name"] in deny:
            wrong.append(f"{name}: deny.toml bans it")
        source = package["source"]
        if source and not source.startswith("registry+"):
            wrong.append(f"{name}: comes from {source}, not from a registry")
        for dependency in package["dependencies"]:
            by_path = dependency["kind"] == "dev" and dependency.get("path") and rules["bans"]["allow-wildcard-paths"]
            if not source and dependency["req"] == "*" and not by_path:
                wrong.append(f"{name}: any version of {dependency['name']} will do; name one")
    for licence in sorted(allow - used):
        wrong.append(f"deny.toml allows {licence}, which nothing has")
    print("\n".join(wrong) or f"{len(packages)} packages of {which}, all as deny.toml allows")
    return 1 if wrong else 0


sys.exit(main())
