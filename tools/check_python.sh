#!/usr/bin/env bash
# The Python package as a user gets it: builds the wheel, installs it into a clean environment, checks types, runs the
# tests, the examples of the documentation and the notebook.
#
#     tools/check_python.sh [PROFILE]      release (default) or dev
#
# PYTHON [default: python3] is the Python of the clean environment: the wheel is the same for every version.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/build"
"$work/build/bin/pip" install -q 'maturin>=1.9.4,<2'
"$work/build/bin/maturin" build -q --profile "$profile" --locked -m crates/python/Cargo.toml --out "$work/wheels"

"${PYTHON:-python3}" -m venv "$work/clean"
"$work/clean/bin/pip" install -q "$work"/wheels/*.whl pytest sacrebleu==2.6.0 matplotlib mypy typing_extensions
ls -l "$work"/wheels
# From another folder, so that the installed package is tested and not the sources.
cp -r crates/python/tests crates/python/pyproject.toml "$work"
export REGARD_DOCS=$PWD/docs REGARD_GOLDENS=$PWD/crates/regard-core/tests/goldens
cd "$work"
"$work/clean/bin/mypy" --strict --no-error-summary -p regard
"$work/clean/bin/python" -m pytest -q tests
