#!/usr/bin/env python3
"""Checks the licences, names and sources of all dependencies against deny.toml, offline.

    python3 tools/check_dependencies.py

It reads `cargo metadata` of the workspace with all features, so that nothing is fetched that a build does not fetch.
"""
import json, pathlib, re, subprocess, sys, tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def allowed(expression, allow):
    """Whether an SPDX expression can be met with the licences in `allow`; `/` is how old manifests write OR."""
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


def main():
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    allow, deny = set(rules["licenses"]["allow"]), set(rules["bans"]["deny"])
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    packages = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)["packages"]
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
            if not source and dependency["req"] == "*":
                wrong.append(f"{name}: any version of {dependency['name']} will do; name one")
    for licence in sorted(allow - used):
        wrong.append(f"deny.toml allows {licence}, which nothing has")
    print("\n".join(wrong) or f"{len(packages)} packages, all as deny.toml allows")
    return 1 if wrong else 0


sys.exit(main())
