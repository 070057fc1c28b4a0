#!/usr/bin/env bash
# The container without a Docker engine: what of its files can be run or checked here is.
#
#     tools/check_container.sh REGARD MODEL      the program (as the build stage makes it) and a model folder
#
# Checked: that the Dockerfile's instructions are well formed and name files that exist; that the program needs no library that
# debian:bookworm-slim lacks; that the entry point serves, as the image's user where the script runs as
# root, with the variables of the image; that the health check succeeds then, and fails without a server; that
# SIGTERM ends it with status 0; that the compose file and the Kubernetes example parse and agree with the image.
# As root, where overlayfs can be mounted, the second stage is also built over a copy-on-write view of this machine's file
# system (RUN and COPY in their order) and run as compose.yaml does: read-only, without capabilities, in a network of its own.
# Not checked: the base images themselves, `apt-get` in them, and the compilation, which `tools/release.sh` does the same way.
set -euo pipefail
cd "$(dirname "$0")/.."
regard=$(realpath "$1") model=$(realpath "$2")

python3 - "$regard" "$model" <<'CHECK'
import json, os, pathlib, re, shlex, shutil, signal, socket, subprocess, sys, tempfile, time, urllib.request

regard, model = sys.argv[1:]
text = pathlib.Path("Dockerfile").read_text()
lines = [line for line in re.sub(r"\\\n", " ", text).splitlines() if line.strip() and not line.startswith("#")]
stages, stage = [], None
for line in lines:
    word, rest = line.split(None, 1)
    if word == "FROM":
        stage = []
        stages.append((rest, stage))
    assert word in "FROM RUN COPY WORKDIR USER ENV VOLUME EXPOSE HEALTHCHECK STOPSIGNAL ENTRYPOINT CMD".split(), word
    stage.append((word, rest))
assert len(stages) == 2 and stages[0][0].endswith("AS build"), "two stages"
build, final = dict(stages[0][1]), stages[1][1]

# Shell of every RUN parses; the profile and the binary that it builds exist.
for _, steps in stages:
    for word, rest in steps:
        if word == "RUN":
            subprocess.run(["bash", "-n", "-c", rest], check=True)
assert "cargo build --profile dist --locked --bin regard" in build["RUN"]
subprocess.run(["cargo", "metadata", "--format-version=1", "--no-deps", "--locked"], check=True, stdout=subprocess.DEVNULL)
ignored = pathlib.Path(".dockerignore").read_text().split()
for needed in ("src", "crates", "Cargo.toml", "Cargo.lock", "examples", "README.md"):
    assert pathlib.Path(needed).exists() and needed not in ignored, needed

# Libraries: what debian:bookworm-slim has of itself, and a glibc no newer than its own, 2.36.
needed = set(re.findall(r"NEEDED\s+(\S+)", subprocess.run(["objdump", "-p", regard], capture_output=True, text=True).stdout))
allowed = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
assert needed <= allowed, needed - allowed
symbols = subprocess.run(["objdump", "-T", regard], capture_output=True, text=True).stdout
glibc = max(tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", symbols))
print(f"libraries: {', '.join(sorted(needed))}; glibc {'.'.join(map(str, glibc))}")
assert glibc <= (2, 36), glibc

setting = {}
for word, rest in final:
    if word == "ENV":
        setting.update(pair.split("=", 1) for pair in rest.split())
last = dict(final)
user = int(last["USER"].split(":")[0])
assert user > 0, "not root"
entry, command = json.loads(last["ENTRYPOINT"]), json.loads(last["CMD"])
health = json.loads(last["HEALTHCHECK"].split("CMD ", 1)[1])
assert setting["REGARD_PORT"] == last["EXPOSE"] and set(json.loads(last["VOLUME"])) >= {"/models"}

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
with tempfile.TemporaryDirectory() as folder:
    os.chmod(folder, 0o755)
    models = pathlib.Path(folder, "models")
    models.mkdir()
    for source in pathlib.Path(model).iterdir():  # the served files, readable by anybody
        if source.is_file():
            target = models / "en-fr" / source.name
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    program = pathlib.Path(folder, "regard")
    shutil.copy(regard, program)
    for path in [models, models / "en-fr", program, *(models / "en-fr").iterdir()]:
        path.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", **setting, "REGARD_MODEL": str(models), "REGARD_PORT": str(port), "HF_HOME": folder + "/none"}
    as_user = dict(user=user, group=user, extra_groups=[]) if os.geteuid() == 0 else {}
    place = {"regard": str(program)}
    ask = [place.get(word, word) for word in health]
    assert subprocess.run(ask, env=environment, stderr=subprocess.PIPE, **as_user).returncode == 1, "no server, no health"
    server = subprocess.Popen([place.get(w, w) for w in entry + command], env=environment, cwd=models, **as_user)
    try:
        for _ in range(200):
            time.sleep(0.1)
            assert server.poll() is None, "the server has ended"
            if subprocess.run(ask, env=environment, stderr=subprocess.PIPE, **as_user).returncode == 0:
                break
        else:
            sys.exit("no health after 20 seconds")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/languages") as answer:
            print("languages:", [language["code"] for language in json.load(answer)], "as user", user if as_user else os.geteuid())
    finally:
        server.send_signal(getattr(signal, last["STOPSIGNAL"]))
    assert server.wait(30) == 0, server.returncode

    if os.geteuid() == 0:
        quoted = lambda words: " ".join(map(shlex.quote, words))
        steps = []
        for word, rest in final:
            if word == "RUN":
                steps.append(f"chroot image sh -c {shlex.quote(rest)}")
            elif word == "COPY":
                origin, source, target = rest.split()
                assert (origin, source) == ("--from=build", "/out/regard"), rest
                steps.append(f"install -m 755 {shlex.quote(str(program))} image{target}")
        variables = [f"{name}={value}" for name, value in {"PATH": "/usr/local/bin:/usr/bin:/bin", **setting}.items()]
        group = last["USER"].split(":")[1]
        limits = f"setpriv --reuid {user} --regid {group} --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs"
        inside = f"chroot image {limits} env -i --chdir={last['WORKDIR']} {quoted(variables)}"
        image = pathlib.Path(folder, "image")
        image.mkdir()
        script = f"""
            set -eu
            cd {image}
            mount -t tmpfs tmpfs . && cd {image} && mkdir upper work image &&
              mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work image 2>/dev/null || exit 77
            {chr(10).join(steps)}
            cp -r {models}/. image/models
            mount -o remount,ro image
            mount -t proc proc image/proc
            mount -t tmpfs tmpfs image/tmp
            mount -t tmpfs -o uid={user},gid={group} tmpfs image/cache
            ip link set lo up
            {inside} {quoted(entry + command)} &
            server=$!
            for _ in $(seq 100); do sleep 0.2; {inside} {quoted(health)} 2>/dev/null && break; done
            {inside} {quoted(health)}
            grep -E '^(Uid|CapBnd|NoNewPrivs)' /proc/$server/status | tr '\\t\\n' '  '
            if {inside} touch /etc/written /models/written 2>/dev/null; then echo 'the image is not read-only' >&2; exit 1; fi
            kill -s {last["STOPSIGNAL"].removeprefix("SIG")} $server
            wait $server
        """
        run = ["unshare", "--mount", "--propagation", "private", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script]
        built = subprocess.run(run, capture_output=True, text=True)
        if built.returncode == 77:
            print("overlayfs cannot be mounted here: the second stage was not built")
        else:
            assert built.returncode == 0, built.stdout + built.stderr
            print("the second stage was built and served:", built.stdout.strip())

try:
    import yaml
except ImportError:
    print("PyYAML is not installed: compose.yaml and packaging/kubernetes.yaml not parsed")
else:
    compose = yaml.safe_load(pathlib.Path("compose.yaml").read_text())
    assert compose["services"]["regard"]["read_only"] and compose["services"]["regard"]["ports"][0].endswith(":" + last["EXPOSE"])
    deployment, service = yaml.safe_load_all(pathlib.Path("packaging/kubernetes.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == user
    assert str(pod["containers"][0]["ports"][0]["containerPort"]) == last["EXPOSE"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
print("the container's commands work")
CHECK
