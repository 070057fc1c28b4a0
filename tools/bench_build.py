"""Times a release build from an empty target folder against that of another checkout, alternating.

    git worktree add ../before dbc4be6
    python3 tools/bench_build.py ../before . --rounds 3

Downloads are fetched before the first round. Needs an idle machine: other load distorts the
times."""
import argparse, pathlib, resource, shutil, statistics, subprocess, sys, tempfile, time

from alternate import append, append_option


def build(checkout, target):
    shutil.rmtree(target, ignore_errors=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(["cargo", "build", "--release", "--locked", "--target-dir", target], cwd=checkout,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return wall, cpu, (target / "release" / "regard").stat().st_size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path, help="a checkout of the commit to compare with")
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    append_option(parser)
    options = parser.parse_args()
    sides = {"before": options.before, "after": options.after}
    for checkout in sides.values():
        subprocess.run(["cargo", "fetch", "--locked", "-q"], cwd=checkout, check=True)
    measured = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.rounds):
            for name, checkout in sides.items():
                wall, cpu, size = build(checkout, pathlib.Path(scratch) / name)
                measured[name].append((wall, cpu, size))
                print(f"round {number + 1}, {name}: {wall:.0f} s, {cpu:.0f} s of CPU time, {size / 1e6:.1f} MB", flush=True)

    def median(name, column):
        return statistics.median(row[column] for row in measured[name])

    ratio = statistics.median(after[0] / before[0] for before, after in zip(measured["before"], measured["after"]))
    print(f"after / before: {ratio:.2f}")

    def commit(checkout):
        return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=checkout, check=True, capture_output=True,
                              text=True).stdout.strip()

    row = {"id": "build/release", "columns": ["", "commit", "seconds", "CPU seconds", "binary, MB"],
           "formats": ["", "", "{:.0f}", "{:.0f}", "{:.1f}"],
           "rows": [[name, commit(checkout), median(name, 0), median(name, 1), median(name, 2) / 1e6]
                    for name, checkout in sides.items()],
           "ratio": round(ratio, 3)}
    rustc = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    append(options.append, [row], options.rounds, {"rustc": rustc})


main()
