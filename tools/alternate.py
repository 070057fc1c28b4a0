"""Code shared by the benchmarks: running a process that prints a line of JSON, describing the
machine, and storing results."""
import datetime, json, pathlib, platform, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "target" / "release" / "regard"


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def data_file(folder, name):
    """A file in a folder, plain or compressed."""
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


def append_option(parser):
    parser.add_argument("--append", type=pathlib.Path, metavar="FILE",
                        help="append the results to FILE (docs/results), with command, machine, versions, date and rounds")


def command_line(words):
    """This script and its arguments, without --append and with absolute paths reduced to their
    names."""
    words, kept = list(words), []
    while words:
        word = words.pop(0)
        if word == "--append":
            words.pop(0)
        elif not word.startswith("--append="):
            kept.append(pathlib.Path(word).name if word.startswith("/") else word)
    return " ".join([f"tools/{pathlib.Path(kept[0]).name}", *kept[1:]])


def append(path, rows, rounds, versions, machine=None):
    """Appends result lines in the format of tools/results.py; does nothing without a path."""
    if path is None:
        return
    more = {"command": command_line(sys.argv), "machine": machine or cpu(), "versions": versions, "rounds": rounds,
            "date": datetime.date.today().isoformat()}
    with open(path, "a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row | more, ensure_ascii=False) + "\n")


def regard_version(binary=BINARY):
    return subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]


def check_binary():
    if not BINARY.exists():
        sys.exit(f"{BINARY.relative_to(ROOT)} is not there: cargo build --release")
