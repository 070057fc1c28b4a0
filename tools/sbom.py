#!/usr/bin/env python3
"""Writes the software bill of materials of the command `regard`: CycloneDX 1.5 in JSON.

    python3 tools/sbom.py OUT.cdx.json

It lists every package that the binary is built from with its default features for this platform
(including build scripts and macros), with version, licence, checksum and dependencies. It reads
`cargo metadata` and Cargo.lock and downloads nothing. The same commit gives the same file.
"""
import datetime, json, pathlib, re, subprocess, sys, tomllib, uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main():
    host = re.search(r"^host: (.+)$", output("rustc", "-vV"), re.M)[1]
    metadata = json.loads(
        output("cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host)
    )
    checksums = {
        (package["name"], package["version"]): package.get("checksum")
        for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    }
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(id for id, package in packages.items() if package["name"] == "regard" and not package["source"])

    def dependencies(id):
        """The dependencies of a build, without those that only tests need."""
        deps = nodes[id]["deps"]
        return sorted(d["pkg"] for d in deps if any(kind["kind"] in (None, "build") for kind in d["dep_kinds"]))

    reached, waiting = {root}, [root]
    while waiting:
        new = set(dependencies(waiting.pop())) - reached
        reached |= new
        waiting += new

    def reference(id):
        return f"pkg:cargo/{packages[id]['name']}@{packages[id]['version']}"

    def component(id):
        package = packages[id]
        one = {
            "type": "application" if id == root else "library",
            "bom-ref": reference(id),
            "name": package["name"],
            "version": package["version"],
            "purl": reference(id),
        }
        if package["description"]:
            one["description"] = " ".join(package["description"].split())
        if package["license"]:
            one["licenses"] = [{"expression": re.sub(r"\s*/\s*", " OR ", package["license"])}]
        if checksum := checksums.get((package["name"], package["version"])):
            one["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if package["repository"]:
            one["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        return one

    others = sorted(reached - {root}, key=reference)
    seconds = int(output("git", "log", "-1", "--format=%ct"))
    commit = output("git", "rev-parse", "HEAD").strip()
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'regard {commit} {host}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tools": {"components": [{"type": "application", "name": "tools/sbom.py"}]},
            "component": component(root),
            "properties": [{"name": "commit", "value": commit}, {"name": "target", "value": host}],
        },
        "components": [component(id) for id in others],
        "dependencies": [
            {"ref": reference(id), "dependsOn": [reference(d) for d in dependencies(id)]} for id in [root, *others]
        ],
    }
    known = {one["bom-ref"] for one in [document["metadata"]["component"], *document["components"]]}
    assert all(to in known for one in document["dependencies"] for to in one["dependsOn"])
    assert len(known) == len(reached), "two packages have the same name and version"
    without = [one["name"] for one in document["components"] if "licenses" not in one]
    assert not without, f"without a licence: {without}"
    pathlib.Path(sys.argv[1]).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    print(f"{sys.argv[1]}: {len(others)} packages")


if len(sys.argv) != 2:
    sys.exit(__doc__)
main()
