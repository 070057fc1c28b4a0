#!/usr/bin/env python3
"""Simulates two hosts on one machine to measure the cost of a slow link between them.

Creates two network namespaces with a veth pair between them, limits the rate of the link with `tc`,
and runs ranks of Regard across it: one on each "host", started by mpirun with its own launcher
instead of ssh. Needs root, iproute2, util-linux and a build with the feature `mpi`:

    cargo build --release --features mpi
    python3 tools/two_hosts.py --preset tiny --rates 100mbit,1gbit,10gbit,none
    python3 tools/two_hosts.py --rates 1gbit -- train --resume --out en-de

The first form measures training steps and prints a table; the second runs any command of Regard.
Only these two namespaces are affected, and they are removed at the end.
"""
import argparse, atexit, itertools, json, os, pathlib, signal, subprocess, sys, tempfile

from alternate import ROOT, append, append_option

NAMES = [f"regard-{os.getpid()}-{side}" for side in "ab"]
LINKS = [f"rg{os.getpid() % 100000}{side}" for side in "ab"]
ADDRESSES = ["10.213.7.1", "10.213.7.2"]

LAUNCHER = """#!/bin/sh
# In place of ssh: the first argument is the host, the rest is a command for a shell there.
shift
exec ip netns exec {name} unshare --uts sh -c "hostname {name}; $*"
"""


def sh(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done


def make_hosts():
    atexit.register(remove_hosts)
    for name in NAMES:
        sh("ip", "netns", "add", name)
    sh("ip", "link", "add", LINKS[0], "netns", NAMES[0], "type", "veth", "peer", "name", LINKS[1], "netns", NAMES[1])
    for name, link, address in zip(NAMES, LINKS, ADDRESSES):
        sh("ip", "-n", name, "address", "add", f"{address}/24", "dev", link)
        for device in ["lo", link]:
            sh("ip", "-n", name, "link", "set", device, "up")


def remove_hosts():
    for name in NAMES:
        sh("ip", "netns", "delete", name, check=False)


def limit(rate):
    """Limits both directions to the rate; `none` means no limit."""
    for name, link in zip(NAMES, LINKS):
        sh("tc", "-n", name, "qdisc", "delete", "dev", link, "root", check=False)
        if rate != "none":
            done = sh("tc", "-n", name, "qdisc", "add", "dev", link, "root", "tbf", "rate", rate, "burst", "1mb", "latency", "100ms",
                      check=False)
            if done.returncode != 0:
                sys.exit(f"this kernel cannot limit the rate of a link (tc, sch_tbf): {done.stderr.strip()}")


def mpirun(launcher, program, arguments):
    network = ADDRESSES[0].rsplit(".", 1)[0] + ".0/24"
    command = [
        "ip", "netns", "exec", NAMES[0], "unshare", "--uts", "sh", "-c", f'hostname {NAMES[0]}; exec "$@"', "sh",
        "mpirun", "-n", "2", "--host", ",".join(f"{a}:1" for a in ADDRESSES), "--map-by", "node", "--bind-to", "none",
        "--mca", "plm_rsh_agent", launcher, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", network,
        "--mca", "oob_tcp_if_include", network, program, *arguments,
    ]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "target/release/regard"))
    parser.add_argument("--rates", default="100mbit,1gbit,10gbit,none", help="as tc writes them, and none")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--wires", default="f32,bf16")
    parser.add_argument("--overlaps", default="off", help="off, on or both with a comma: whether gradients leave during the backward pass")
    parser.add_argument("--seconds", default="10")
    append_option(parser)
    parser.add_argument("command", nargs="*", help="a command of regard to run in place of the measurement")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("network namespaces are made by root")
    if not pathlib.Path(options.program).exists():
        sys.exit(f"{options.program} is not there: cargo build --release --features mpi")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    make_hosts()
    with tempfile.TemporaryDirectory() as folder:
        launcher = pathlib.Path(folder) / "launcher"
        launcher.write_text(LAUNCHER.format(name=NAMES[1]))
        launcher.chmod(0o755)
        if options.command:
            limit(options.rates.split(",")[0])
            done = mpirun(str(launcher), options.program, options.command)
            print(done.stdout, end="")
            sys.exit(done.returncode)
        print("| link | wire | overlap | ms per step | of which exchange | MB sent by a rank | Mbit/s |\n|---|---|---|---|---|---|---|")
        for rate in options.rates.split(","):
            limit(rate)
            for wire, overlap in itertools.product(options.wires.split(","), options.overlaps.split(",")):
                arguments = ["bench", "train", "--preset", options.preset, "--threads", "1", "--seconds", options.seconds,
                             "--wire", wire, "--overlap", overlap, "--json"]
                done = mpirun(str(launcher), options.program, arguments)
                if done.returncode != 0:
                    sys.exit(f"the job failed with status {done.returncode}")
                r = json.loads(done.stdout.strip().splitlines()[-1])
                row = {"id": f"mpi/two-hosts-{options.preset}-{rate}-{wire}-{overlap}", "step_ms": r["step_ms"], "exchange_ms": r["exchange_ms"], "wire_mb": r["wire_mb"]}
                append(options.append, [row], 1, {"regard": r["version"]})
                speed = 8 * r["wire_mb"] / (1e-3 * max(r["exchange_ms"], 1e-3))
                print(f"| {rate} | {wire} | {overlap} | {r['step_ms']:.0f} | {r['exchange_ms']:.0f} | {r['wire_mb']:.1f} | {'–' if overlap == 'on' else f'{speed:.0f}'} |", flush=True)


main()
