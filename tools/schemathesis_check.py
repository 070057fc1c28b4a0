#!/usr/bin/env python3
"""Tests a server with requests generated from its OpenAPI document: every answer must be one that
the document describes.

    cargo build --release && target/release/regard quickstart --out model
    python3 tools/schemathesis_check.py target/release/regard model

Makes a virtual environment in a temporary folder, starts `regard serve` on a free port of
127.0.0.1, and lets Schemathesis send it requests that fit /spec and requests that do not. Exit 1 on
any finding. The seed and the number of requests are fixed. Needs a package index for Schemathesis.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import venv

from serving import serving

TOOL = "schemathesis==4.32.5"

# A schema cannot express which language pairs have a route, that a file is UTF-8 or that a text has
# few tokens: a valid request may be rejected with 400. Everything else that is not described is a
# finding.
CONFIG = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "400", "404"]
"""


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: schemathesis_check.py REGARD MODEL")
    regard, model = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", TOOL], check=True)
        config = folder / "schemathesis.toml"
        config.write_text(CONFIG)
        # Keep translations short: only the form of the answers is checked.
        with serving(regard, model, "--max-length", "20", "--beam", "1") as (_, address):
            command = [folder / "venv" / "bin" / "schemathesis", "--config-file", config, "run", f"http://{address}/spec"]
            command += ["--phases", "examples,coverage,fuzzing", "--max-examples", "25", "--seed", "1", "--no-color"]
            command += ["--generation-database", "none", "--request-timeout", "30", "--warnings", "off"]
            # A proxy of the environment must not see requests to this machine.
            environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
            outcome = subprocess.run(command, cwd=folder, env=environment)
    sys.exit(1 if outcome.returncode else 0)


if __name__ == "__main__":
    main()
