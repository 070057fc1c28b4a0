"""What the benchmarks share: running a process that prints a line of JSON, and saying what machine
this is."""
import json, pathlib, platform, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "target" / "release" / "regard"


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def data_file(folder, name):
    """A file of a folder, plain or compressed."""
    for path in [folder / name, folder / f"{name}.gz"]:
        if path.exists():
            return path
    sys.exit(f"{folder / name} is not there, nor {name}.gz")


def cpu():
    try:
        for line in open("/proc/cpuinfo"):
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


def check_binary():
    if not BINARY.exists():
        sys.exit(f"{BINARY.relative_to(ROOT)} is not there: cargo build --release")
