#!/usr/bin/env python3
"""Reads a log folder with the real TensorBoard and prints what it finds; exits with status 1 if it
finds nothing.

    python -m venv venv && venv/bin/pip install tensorboard
    venv/bin/python tools/check_tensorboard.py DIR/logs [--expect TAG]...
"""

import argparse
import math
import sys

from tensorboard import version
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--expect", action="append", default=[], metavar="TAG", help="a scalar that must be there")
    arguments = parser.parse_args()

    # size_guidance 0: keep every event instead of a sample of them.
    events = EventAccumulator(arguments.folder, size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    faults = [f"no scalar {tag!r}" for tag in arguments.expect if tag not in tags["scalars"]]

    print(f"tensorboard {version.VERSION}, file version {events.file_version}")
    for tag in sorted(tags["scalars"]):
        values = events.Scalars(tag)
        steps = [v.step for v in values]
        if steps != sorted(set(steps)):
            faults.append(f"{tag}: steps do not rise")
        finite = [v.value for v in values if math.isfinite(v.value)]
        extent = f"{min(finite):g} to {max(finite):g}" if finite else "none finite"
        print(f"scalar {tag}: {len(values)} values, steps {steps[0]} to {steps[-1]}, {extent}, last {values[-1].value:g}")
    for tag in sorted(tags["tensors"]):
        values = events.Tensors(tag)
        text = tensor_util.make_ndarray(values[-1].tensor_proto).ravel()[0]
        plugin = events.SummaryMetadata(tag).plugin_data.plugin_name
        print(f"{plugin} {tag}: {len(values)} values, last at step {values[-1].step}: {text.decode('utf-8')[:60]!r}")
    if not tags["scalars"] and not tags["tensors"]:
        faults.append("no scalars and no texts")
    for fault in faults:
        print(f"fault: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
