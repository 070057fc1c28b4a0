#!/usr/bin/env python3
"""Fault injection: what was saved must load, and a resumed run must end as if nothing had happened.

    cargo build --release
    python3 tools/fault_test.py                      everything, with 20 kills
    python3 tools/fault_test.py --only kill --kills 200
    python3 tools/fault_test.py --only power,disk --regard target/release/regard

kill         kill -9 at random moments of small training runs; the next --resume continues. Every
             finished run has bitwise the same weights and losses as an undisturbed one.
ranks        kill -9 of one of two ranks of an MPI job; only with --only ranks, because it needs a
             build with the feature mpi.
power        Power loss: every write, rename and sync of a run is recorded (with strace), and the
             folder is rebuilt as it would be after each of them, with unsynced data truncated
             or missing. Each state must be a model, or report that it is not one yet; --resume
             continues.
disk         A disk (tmpfs) that is too small for the run, in many sizes; then it grows.
readonly     A read-only folder.
descriptors  So few file descriptors that the run fails at a different point each time.
corpus       The corpus changes between two parts of a run.
diverge      A learning rate that makes the loss infinite.
clock        The time of day jumps by days and years ten times a second (with a preloaded library;
             needs a C compiler): a run ends as undisturbed, --minutes takes its minutes, and a
             server's limits, cached files and idle models depend on elapsed time only.
serve        The server under load: SIGHUP loses no request, SIGTERM finishes what was accepted,
             too few descriptors cost connections but not the server, a full disk has no effect.

Each prints one line; the exit status is 1 if one found a fault. disk and readonly mount a tmpfs and
need root; power needs strace; tests that cannot run here say so.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from faults import Fault, expect
from power_loss import Disk, record

ROOT = pathlib.Path(__file__).resolve().parent.parent
SETTINGS = [
    "d_model=16", "heads=2", "d_ff=16", "encoder_layers=1", "decoder_layers=1", "tokenizer.size=400",
    "batch.max_tokens=200", "validation.every=4 steps", "checkpoints.every=2 steps", "log_every=1", "warmup=5",
]  # fmt: skip
NOT_YET = "is not a model yet"


def write_corpus(folder, pairs=60):
    """Sentences of a small grammar, deterministic."""
    chosen = random.Random(1)
    words = [("dog", "chien"), ("cat", "chat"), ("house", "maison"), ("tree", "arbre"), ("river", "fleuve"), ("book", "livre")]
    deeds = [("sees", "voit"), ("likes", "aime"), ("finds", "trouve"), ("paints", "peint")]

    def pair():
        (a, b), (c, d), (e, f) = chosen.choice(words), chosen.choice(deeds), chosen.choice(words)
        number = chosen.randrange(100)
        return f"The {a} {c} the {e} {number}.", f"Le {b} {d} le {f} {number}."

    for name, count in [("train", pairs), ("valid", 10)]:
        lines = [pair() for _ in range(count)]
        for ending, side in [("en", 0), ("fr", 1)]:
            (folder / f"{name}.{ending}").write_text("".join(line[side] + "\n" for line in lines))


class Runs:
    """Small training runs in one folder with one corpus."""

    def __init__(self, regard, folder, steps):
        self.regard, self.folder, self.steps = str(regard), folder, steps
        write_corpus(folder)
        begin = time.monotonic()
        outcome = self.finish(folder / "whole")
        self.seconds = time.monotonic() - begin
        expect(outcome.returncode == 0, outcome.stderr)
        self.losses, self.weights = self.results(folder / "whole")

    def command(self, out, *more, steps=None):
        command = [self.regard, "train", "--src", "train.en", "--tgt", "train.fr", "--valid-src", "valid.en"]
        command += ["--valid-tgt", "valid.fr", "--preset", "tiny", "--threads", "1", "--out", str(out)]
        command += [part for setting in SETTINGS for part in ("--set", setting)]
        planned = [] if "--minutes" in more else ["--steps", str(steps or self.steps)]
        return [*command, *planned, *more]

    def finish(self, out, *more, steps=None, limit=None, env=None):
        command = self.command(out, *more, steps=steps)
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=limit, env=env,
            timeout=600,
        )  # fmt: skip

    @staticmethod
    def results(out):
        lines = [json.loads(line) for line in (out / "logs/log.jsonl").read_text().splitlines()]
        steps = [(line["step"], line["loss"]) for line in lines if line["kind"] == "step"]
        return steps, (out / "model.safetensors").read_bytes()

    def check_loadable(self, out, when):
        """Checks that the folder is a loadable model, or does not claim to be one yet."""
        told = subprocess.run([self.regard, "info", "--model", str(out)], capture_output=True, text=True)
        if told.returncode == 0:
            return True
        states = list(out.glob("checkpoints/*.ckpt"))
        expect(not states, f"{when}: there is a state, but no model: {told.stderr}")
        nothing = not (out / "cache/lock").exists()
        expect(NOT_YET in told.stderr or nothing, f"{when}: {told.stderr}")
        expect("panicked" not in told.stderr, f"{when}: {told.stderr}")
        return False

    def check_whole(self, out, when):
        """Checks that the result equals that of the undisturbed run."""
        losses, weights = self.results(out)
        expect(losses == self.losses, f"{when}: the losses differ")
        expect(weights == self.weights, f"{when}: the weights differ")
        self.check_leftovers(out, when)

    @staticmethod
    def check_leftovers(out, when):
        left = [str(path) for path in out.rglob("*") if ".part" in path.name]
        expect(not left, f"{when}: left over: {left}")

    def check_message(self, outcome, when):
        """Checks for one clear message at the end, and no panic."""
        expect(outcome.returncode == 1, f"{when}: status {outcome.returncode}: {outcome.stderr}")
        last = outcome.stderr.rstrip("\n").rsplit("\n", 1)[-1]
        expect(last.startswith("regard: ") and "panicked" not in outcome.stderr, f"{when}: {outcome.stderr}")
        return last


def kill(runs, options):
    chosen = random.Random(options.seed)
    kills = finished = early = 0
    while kills < options.kills:
        out = runs.folder / "killed"
        shutil.rmtree(out, ignore_errors=True)
        loadable = False
        while True:
            child = subprocess.Popen(
                runs.command(out, "--resume"), cwd=runs.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            try:
                # Usually shorter than a whole run, so that a run is killed several times.
                child.wait(timeout=chosen.uniform(0.0, 0.9) * runs.seconds if kills < options.kills else None)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
            stderr = child.stderr.read()
            child.stderr.close()
            if child.wait() == 0:
                break
            expect(child.returncode == -signal.SIGKILL, f"kill {kills}: {stderr}")
            kills += 1
            now = runs.check_loadable(out, f"kill {kills}")
            expect(now or not loadable, f"kill {kills}: there was a model, and now there is none")
            loadable, early = now, early + (not now)
        runs.check_whole(out, f"after {kills} kills")
        finished += 1
    return f"{kills} kills ({early} before the first save), {finished} runs finished, all identical to the bit"


def processes_of(command, parent):
    """The processes below `parent` that run `command`."""
    below, found = {parent}, []
    for folder in sorted(pathlib.Path("/proc").glob("[0-9]*"), key=lambda folder: int(folder.name)):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) in below:
                below.add(int(folder.name))
                if (folder / "cmdline").read_bytes().startswith(command.encode() + b"\0"):
                    found.append(int(folder.name))
    return found


def ranks(runs, options):
    """Kills one rank of a job at a random moment; MPI ends the others."""
    chosen = random.Random(options.seed)
    env = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "btl_vader_single_copy_mechanism", "none", "-n", "2"]

    def start(out, *more):
        return subprocess.Popen(
            [*mpirun, *runs.command(out, *more)], cwd=runs.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env=env,
        )  # fmt: skip

    begin = time.monotonic()
    whole = start(runs.folder / "ranks")
    _, stderr = whole.communicate()
    expect(whole.returncode == 0, f"two ranks, undisturbed (is it a build with the feature mpi?): {stderr}")
    seconds = time.monotonic() - begin
    expected = runs.results(runs.folder / "ranks")
    kills = [0, 0]
    finished = early = 0
    while sum(kills) < options.kills:
        out = runs.folder / "killed-ranks"
        shutil.rmtree(out, ignore_errors=True)
        loadable = False
        while True:
            when = f"kill {sum(kills)}"
            child = start(out, "--resume")
            killed = False
            try:
                child.wait(timeout=chosen.uniform(0.0, 0.9) * seconds if sum(kills) < options.kills else None)
            except subprocess.TimeoutExpired:
                rank = chosen.randrange(2)
                # In the order of their start, which is that of the ranks.
                if len(processes := processes_of(runs.regard, child.pid)) == 2:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(processes[rank], signal.SIGKILL)
                        killed = True
            try:
                _, stderr = child.communicate(timeout=120)
            except subprocess.TimeoutExpired as late:
                child.kill()
                raise Fault(f"{when}: the job goes on without rank {rank}") from late
            if child.returncode == 0:
                break
            expect(killed and "panicked" not in stderr, f"{when}: {stderr}")
            kills[rank] += 1
            now = runs.check_loadable(out, when)
            expect(now or not loadable, f"{when}: there was a model, and now there is none")
            loadable, early = now, early + (not now)
        expect(runs.results(out) == expected, f"after {sum(kills)} kills: losses or weights differ")
        runs.check_leftovers(out, f"after {sum(kills)} kills")
        finished += 1
    return (
        f"{kills[0]} kills of rank 0 and {kills[1]} of rank 1 ({early} before the first save), {finished} jobs finished, "
        "all identical to the bit"
    )


# ---- power loss
# -----------------------------------------------------------------------------------


def power(runs, options):
    if not shutil.which("strace"):
        return "skipped: there is no strace"
    out = runs.folder / "recorded"
    operations = record(runs.command(out), runs.folder, out)
    replay = runs.folder / "replayed"
    disk, checked, resumed, loadable = Disk(), 0, 0, 0
    chosen = random.Random(options.seed)
    was_loadable = False
    for i, operation in enumerate(operations):
        disk.apply(operation)
        if operation[0] in ("seek", "close"):
            continue
        # Appended lines of a log are many and similar.
        if operation[1].endswith((b".jsonl", b"stdout")) and chosen.random() > 0.1:
            continue
        for how in ("all", "data", "half", "names"):
            shutil.rmtree(replay, ignore_errors=True)
            replay.mkdir()
            place = lambda path: replay / os.fsdecode(os.path.relpath(path, os.fsencode(out)))
            for folder in sorted(disk.folders):
                place(folder).mkdir(parents=True, exist_ok=True)
            for path, content in disk.lay_out(how):
                place(path).parent.mkdir(parents=True, exist_ok=True)
                place(path).write_bytes(content)
            when = f"after operation {i} of {len(operations)} ({operation[0]} {os.path.basename(operation[1])}), {how}"
            now = runs.check_loadable(replay, when)
            if how == "all":
                expect(now or not was_loadable, f"{when}: there was a model, and now there is none")
                was_loadable = now
            checked, loadable = checked + 1, loadable + now
            if chosen.random() < options.resume_share:
                outcome = runs.finish(replay, "--resume")
                expect(outcome.returncode == 0, f"{when}: it does not resume: {outcome.stderr}")
                runs.check_whole(replay, f"{when}, resumed")
                resumed += 1
    return f"{checked} states after {len(operations)} operations: {loadable} models, the others say so; {resumed} resumed"


# ---- disks, descriptors, corpora
# ------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder, kilobytes):
    """A tmpfs of this size; None if it cannot be mounted."""
    place = folder / "disk"
    place.mkdir(exist_ok=True)
    options = f"size={kilobytes}k"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True)
    if mounted.returncode != 0:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def remount(place, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)


def disk(runs, _):
    whole = sum(path.stat().st_size for path in (runs.folder / "whole").rglob("*") if path.is_file()) // 1024
    failures, messages = 0, set()
    for share in (5, 15, 25, 40, 55, 65, 75, 85, 92, 97):
        with small_disk(runs.folder, whole * share // 100) as place:
            if place is None:
                return "skipped: a tmpfs cannot be mounted here"
            out = place / "out"
            outcome = runs.finish(out, "--resume")
            if outcome.returncode != 0:
                failures += 1
                last = runs.check_message(outcome, f"{share} %")
                expect("No space left" in last, f"{share} %: {last}")
                messages.add(last.rsplit(": ", 1)[-1])
                runs.check_loadable(out, f"{share} %")
            remount(place, f"size={4 * whole}k")
            outcome = runs.finish(out, "--resume")
            expect(outcome.returncode == 0, f"{share} %, then enough: {outcome.stderr}")
            runs.check_whole(out, f"{share} %, then enough")
    expect(failures >= 5, f"only {failures} runs have met the end of the disk")
    return f"10 sizes, {failures} full disks ({', '.join(messages)}), all went on after it had grown"


def readonly(runs, _):
    with small_disk(runs.folder, 100_000) as place:
        if place is None:
            return "skipped: a tmpfs cannot be mounted here"
        out = place / "out"
        expect(runs.finish(out, steps=4).returncode == 0, "the first steps failed")
        remount(place, "ro")
        last = runs.check_message(runs.finish(out, "--resume"), "read-only")
        expect("Read-only file system" in last, last)
        runs.check_loadable(out, "read-only")
        expect(subprocess.run([runs.regard, "info", "--model", out], capture_output=True).returncode == 0, "info fails")
        remount(place, "rw")
        outcome = runs.finish(out, "--resume")
        expect(outcome.returncode == 0, outcome.stderr)
        runs.check_whole(out, "writable again")
    return f"one message ({last.rsplit(': ', 1)[-1]}), then it went on"


def descriptors(runs, _):
    out, failures = runs.folder / "descriptors", 0
    for most in range(4, 16):
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        outcome = runs.finish(out, "--resume", limit=limit)
        if outcome.returncode != 0:
            failures += 1
            # With too few descriptors to start, the error may come from the system's loader.
            if outcome.returncode != 127:
                expect("panicked" not in outcome.stderr, f"{most} descriptors: {outcome.stderr}")
                last = runs.check_message(outcome, f"{most} descriptors")
                expect("Too many open files" in last, f"{most} descriptors: {last}")
            runs.check_loadable(out, f"{most} descriptors")
    expect(0 < failures, "no run has met the limit")
    outcome = runs.finish(out, "--resume")
    expect(outcome.returncode == 0, outcome.stderr)
    runs.check_whole(out, "enough descriptors again")
    return f"4 to 15 descriptors: {failures} failed with one message, the others ran"


def corpus(runs, _):
    out, file = runs.folder / "corpus", runs.folder / "train.en"
    expect(runs.finish(out, steps=4).returncode == 0, "the first steps failed")
    before = file.read_text()
    try:
        file.write_text(before.replace("dog", "wolf"))
        last = runs.check_message(runs.finish(out, "--resume"), "changed")
        expect("train.en" in last or "corpus" in last, last)
        file.write_text(before + "One line more.\n")
        more = runs.check_message(runs.finish(out, "--resume"), "longer")
        file.unlink()
        missing = runs.finish(out, "--resume")
    finally:
        file.write_text(before)
    expect(missing.returncode in (0, 1) and "panicked" not in missing.stderr, missing.stderr)
    outcome = runs.finish(out, "--resume")
    expect(outcome.returncode == 0, outcome.stderr)
    runs.check_whole(out, "the old corpus again")
    return f"refused ({last[:100]}; {more[:100]}), then it went on with the old one"


def diverge(runs, _):
    out = runs.folder / "diverged"
    expect(runs.finish(out, steps=4).returncode == 0, "the first steps failed")
    saved = runs.results(out)[1]
    outcome = runs.finish(out, "--resume", "--set", "schedule.peak=1e30", steps=400)
    told = subprocess.run([runs.regard, "info", "--model", out], capture_output=True, text=True)
    expect(told.returncode == 0, told.stderr)
    expect("panicked" not in outcome.stderr, outcome.stderr)
    expect(outcome.returncode == 1, outcome.stderr)
    message = next((line for line in outcome.stderr.splitlines() if line.startswith("regard: ")), "")
    expect("no longer a number" in message, outcome.stderr)
    weights = runs.results(out)[1]
    expect(len(weights) == len(saved), "the weights have another size")
    return f"one message ({message[8:70]}…), and the folder still loads"


# ---- the clock
# ------------------------------------------------------------------------------------


JUMPING_CLOCK = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long jump(void) {
    static const long days[] = {0, 1, -1, 4000, -4000};
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return 86400 * days[(now.tv_sec * 10 + now.tv_nsec / 100000000) % 5];
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int outcome = syscall(SYS_clock_gettime, clock, time);
    if (outcome == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += jump();
    return outcome;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
"""


def clock(runs, options):
    source, library = runs.folder / "clock.c", runs.folder / "clock.so"
    source.write_text(JUMPING_CLOCK)
    if not shutil.which("cc"):
        return "skipped: there is no C compiler here"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    env = os.environ | {"LD_PRELOAD": str(library)}

    # Check that the program sees the jumps: keys have the day on which they were added.
    keys = runs.folder / "keys"
    days = set()
    for n in range(40):
        subprocess.run([runs.regard, "keys", "add", f"k{n}", "--file", keys], env=env, check=True, capture_output=True)
        time.sleep(0.03)
        days = set(re.findall(r"\d{4}-\d\d-\d\d", keys.read_text()))
        if len(days) >= 3:
            break
    expect(len(days) >= 3, f"the clock does not jump: {days}")

    out = runs.folder / "clock"
    # Killed in the middle: a run of fewer steps would have another learning rate.
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(runs.command(out), cwd=runs.folder, capture_output=True, stdin=subprocess.DEVNULL, env=env, timeout=runs.seconds / 2)
    outcome = runs.finish(out, "--resume", env=env)
    expect(outcome.returncode == 0, outcome.stderr)
    runs.check_whole(out, "with jumps")

    begin = time.monotonic()
    outcome = runs.finish(runs.folder / "minutes", "--minutes", "0.05", env=env)
    passed = time.monotonic() - begin
    expect(outcome.returncode == 0, outcome.stderr)
    expect(3 <= passed < 120, f"--minutes 0.05 took {passed:.1f} s")

    model = served_model(runs)
    server = Server(options.regard, model, "--requests-per-minute", "8", "--unload-after", "1", env=env)
    limited = []
    begin = time.monotonic()
    while time.monotonic() - begin < 2:
        limited.append(server.translate("The dog sees the cat.")[0])
        time.sleep(0.05)
    expect(limited.count(200) == 8 and set(limited) == {200, 429}, f"8 requests per minute: {limited}")
    # Whatever the clock says, an idle model is unloaded, and not before its second has passed.
    metric = lambda name: int(re.search(rf"{name}\{{[^}}]*\}} (\d+)".encode(), server.ask("GET", "/metrics")[1])[1])
    while metric("regard_model_loaded") == 1 and time.monotonic() - begin < 60:
        time.sleep(0.2)
    expect(metric("regard_model_loaded") == 0, "the idle model was not unloaded")
    expect(server.end()[0] == 0, "the server did not end well")

    server = Server(options.regard, model, "--unload-after", "600", env=env)
    status, answer = server.upload("a.txt", "The dog sees the cat.\n")
    expect(status == 200, f"upload: {status} {answer}")
    path = "/" + json.loads(answer)["translatedFileUrl"].split("/", 3)[3]
    for _ in range(20):
        expect(server.ask("GET", path)[0] == 200, "a file is gone before its time")
        time.sleep(0.05)
    expect(metric("regard_model_loads_total") == metric("regard_model_loaded") == 1, "a model was unloaded before its time")
    expect(server.end()[0] == 0, "the server did not end well")
    return f"a run and its --resume as undisturbed, --minutes 0.05 in {passed:.1f} s, limits, files and idle models by the time that passed"


# ---- the server
# -----------------------------------------------------------------------------------


class Server:
    def __init__(self, regard, model, *flags, limit=None, env=None):
        command = [str(regard), "serve", "--model", str(model), "--port", "0", "--log", "quiet", "--max-length", "20", *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=limit, env=env)
        line = self.process.stderr.readline()
        found = re.search(r"serving on http://(\S+):(\d+)", line)
        expect(found, f"the server did not start: {line}")
        self.host, self.port = found[1], int(found[2])
        # Drain its output, so that it never blocks on a full pipe.
        self.said = []
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stderr))
        self.reader.start()

    def ask(self, method, path, body=None, headers=None, timeout=60):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def translate(self, text):
        body = json.dumps({"q": text, "source": "en", "target": "fr"})
        return self.ask("POST", "/translate", body, {"Content-Type": "application/json"})

    def upload(self, name, text):
        fields = [("source", "", "en"), ("target", "", "fr"), ("file", f'; filename="{name}"', text)]
        part = '--x\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
        body = "".join(part.format(*field) for field in fields) + "--x--\r\n"
        return self.ask("POST", "/translate_file", body, {"Content-Type": "multipart/form-data; boundary=x"})

    def end(self, signal_number=signal.SIGTERM):
        self.process.send_signal(signal_number)
        status = self.process.wait(timeout=60)
        self.reader.join()
        self.process.stderr.close()
        return status, "".join(self.said)


def clients(server, count, seconds, outcomes, stop):
    def client(n):
        i = 0
        while not stop.is_set():
            i += 1
            try:
                status, answer = server.translate(f"The dog {n} sees the cat {i}.")
                outcomes.append(status if status != 200 or b"translatedText" in answer else "half an answer")
            except (ConnectionError, http.client.HTTPException, OSError) as error:
                outcomes.append(type(error).__name__)
                if isinstance(error, ConnectionRefusedError):
                    return

    threads = [threading.Thread(target=client, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    return threads


def served_model(runs):
    """A copy of the undisturbed run's model, as a value for --model."""
    model = runs.folder / "served"
    shutil.rmtree(model, ignore_errors=True)
    shutil.copytree(runs.folder / "whole", model, ignore=shutil.ignore_patterns("checkpoints", "cache"))
    return f"en-fr={model}"


def serve(runs, options):
    model, report = runs.folder / "served", []
    named = served_model(runs)

    # SIGHUP under load, while the model is replaced: no request fails.
    server = Server(options.regard, named)
    outcomes, stop = [], threading.Event()
    threads = clients(server, 16, 0.5, outcomes, stop)
    for _ in range(options.hangups):
        new = runs.folder / "served.new"
        shutil.copytree(model, new)
        old = runs.folder / "served.old"
        model.rename(old)
        new.rename(model)
        shutil.rmtree(old)
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
    expect(server.process.poll() is None, f"SIGHUP ended the server: {server.said}")
    loads = re.search(rb'regard_model_loads_total\{[^}]*\} (\d+)', server.ask("GET", "/metrics")[1])
    stop.set()
    for thread in threads:
        thread.join()
    wrong = [outcome for outcome in outcomes if outcome != 200]
    expect(not wrong, f"SIGHUP: {len(wrong)} of {len(outcomes)} requests failed: {set(wrong)}")
    report.append(f"SIGHUP x {options.hangups}: {len(outcomes)} requests, none failed, {int(loads[1])} loads")

    # SIGTERM under load: accepted requests are answered.
    outcomes, stop = [], threading.Event()
    threads = clients(server, 16, 1.0, outcomes, stop)
    status, said = server.end()
    stop.set()
    for thread in threads:
        thread.join()
    expect(status == 0, f"SIGTERM: status {status}: {said}")
    # A connection that the system had accepted but the server had not is reset: nothing of it was
    # read. The client notices when it reads, or earlier, when it writes a second time.
    refused = ("ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError", "RemoteDisconnected")
    wrong = [outcome for outcome in outcomes if outcome not in (200, 503, *refused)]
    expect(not wrong, f"SIGTERM: {set(wrong)}")
    report.append(f"SIGTERM: {outcomes.count(200)} answered, {len(outcomes) - outcomes.count(200)} not let in")

    # Few descriptors: some connections fail, the server does not.
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    server = Server(options.regard, named, limit=limit)
    outcomes, stop = [], threading.Event()
    threads = clients(server, 60, 2.0, outcomes, stop)
    stop.set()
    for thread in threads:
        thread.join()
    expect(server.translate("The dog sees the cat.")[0] == 200, "few descriptors: the server does not answer any more")
    status, said = server.end()
    expect(status == 0 and "panicked" not in said, f"few descriptors: {status}: {said}")
    report.append(f"40 descriptors, 60 clients: {outcomes.count(200)} answered, then all well")

    # Uploads on a full disk: the server needs no disk for them.
    def nothing_written():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    empty = runs.folder / "tmp"
    empty.mkdir(exist_ok=True)
    server = Server(options.regard, named, limit=nothing_written, env=os.environ | {"TMPDIR": str(empty)})
    text = "The dog sees the cat.\n" * 40
    for n in range(30):
        status, answer = server.upload(f"{n}.txt", text)
        expect(status == 200, f"upload {n}: {status} {answer}")
    expect(not list(empty.iterdir()), f"left over: {list(empty.iterdir())}")
    status, said = server.end()
    expect(status == 0, said)
    report.append("30 uploads without a byte on a disk")
    return "; ".join(report)


ALL = {"kill": kill, "power": power, "disk": disk, "readonly": readonly, "descriptors": descriptors, "corpus": corpus,
       "diverge": diverge, "clock": clock, "serve": serve}  # fmt: skip
# Only if asked for, because it needs a build with the feature mpi.
ON_REQUEST = {"ranks": ranks}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regard", type=pathlib.Path, default=ROOT / "target/release/regard")
    parser.add_argument("--only", default=",".join(ALL), help="comma-separated names")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--hangups", type=int, default=10)
    parser.add_argument("--resume-share", type=float, default=0.03, help="share of the states after a power loss that are resumed")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.regard = options.regard.resolve()
    names = options.only.split(",")
    tests = ALL | ON_REQUEST
    unknown = [name for name in names if name not in tests]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(tests)}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(options.regard, pathlib.Path(folder).resolve(), options.steps)
        for name in names:
            begin = time.monotonic()
            try:
                print(f"{name}: {tests[name](runs, options)} ({time.monotonic() - begin:.0f} s)", flush=True)
            except Fault as fault:
                failed += 1
                print(f"{name}: FAULT: {fault}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
