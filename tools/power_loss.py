"""What a power loss leaves of the files of a program: its operations on files are recorded with
strace, and applied to a simulated disk on which only synced data and names are durable."""

import os
import re
import subprocess

from faults import Fault, expect

CALL = re.compile(r"^(?:\[pid +\d+\] |\d+ +)?(\w+)\((.*)\) += (-?\d+)")
QUOTED = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def unquoted(text):
    return bytes.fromhex(text.replace("\\x", ""))


def record(command, folder, out):
    """The operations of a command, started in a folder, on the files in `out`, in order:
    (operation, path, …)."""
    trace = folder / "trace"
    calls = "openat,open,creat,write,pwrite64,writev,rename,renameat,renameat2,unlink,unlinkat,ftruncate,fsync,fdatasync,mkdir,mkdirat,close,lseek,copy_file_range,sendfile,fallocate,mmap"
    traced = ["strace", "-f", "-xx", "-s", "100000000", "-e", f"trace={calls}", "-o", str(trace), *command]
    outcome = subprocess.run(traced, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    expect(outcome.returncode == 0, outcome.stderr)
    inside = str(out).encode()
    operations, names, unfinished = [], {}, {}
    for line in trace.open():
        # Calls of several threads are interleaved.
        thread, _, rest = line.rstrip("\n").partition(" ")
        rest = rest.lstrip()
        if rest.endswith("<unfinished ...>"):
            unfinished[thread] = rest[: -len("<unfinished ...>")]
            continue
        if rest.startswith("<... "):
            rest = unfinished.pop(thread, "") + rest.split("resumed>", 1)[1]
        found = CALL.match(rest)
        if not found or int(found[3]) < 0:
            continue
        call, arguments, result = found[1], found[2], int(found[3])
        texts = [unquoted(text) for text in QUOTED.findall(arguments)]
        first = arguments.split(",", 1)[0]
        if call in ("openat", "open", "creat"):
            path = os.path.join(os.fsencode(folder), texts[0])
            names[result] = path
            if path.startswith(inside):
                if "O_TRUNC" in arguments or call == "creat":
                    operations.append(("truncate", path, 0))
                elif "O_CREAT" in arguments:
                    operations.append(("create", path))
                names[result] = (path, "O_APPEND" in arguments)
            continue
        if call in ("rename", "renameat", "renameat2"):
            paths = [os.path.join(os.fsencode(folder), text) for text in texts]
            if paths[1].startswith(inside):
                operations.append(("rename", *paths))
            continue
        if call in ("unlink", "unlinkat", "mkdir", "mkdirat"):
            path = os.path.join(os.fsencode(folder), texts[0])
            if path.startswith(inside):
                operations.append(("mkdir" if "mkdir" in call else "unlink", path))
            continue
        if call == "mmap":
            # The fifth argument is the descriptor; a shared writable mapping would escape the
            # recording.
            parts = arguments.split(", ")
            known = names.get(int(parts[4])) if len(parts) > 4 and parts[4].isdigit() else None
            escaped = isinstance(known, tuple) and "MAP_SHARED" in arguments and "PROT_WRITE" in arguments
            expect(not escaped, f"a shared mapping of {known} is written to: this script cannot follow it")
            continue
        descriptor = int(first) if first.isdigit() else -1
        known = names.get(descriptor)
        if call == "close":
            names.pop(descriptor, None)
        if not isinstance(known, tuple):
            continue
        path, append = known
        if call in ("write", "writev"):
            operations.append(("write", path, descriptor, b"".join(texts)[:result]))
        elif call == "pwrite64":
            operations.append(("pwrite", path, texts[0][:result], int(arguments.rsplit(",", 1)[1])))
        elif call == "ftruncate":
            operations.append(("truncate", path, int(arguments.rsplit(",", 1)[1])))
        elif call == "lseek":
            operations.append(("seek", path, descriptor, result))
        elif call in ("fsync", "fdatasync"):
            operations.append(("sync", path))
        elif call in ("copy_file_range", "sendfile", "fallocate"):
            raise Fault(f"{call} is used: this script cannot follow it")
        elif call == "close":
            operations.append(("close", path, descriptor))
    return operations


class Disk:
    """What a run has written, and what would remain of it after a power loss."""

    def __init__(self):
        self.files = {}  # name: number of its content
        self.contents = {}  # number: [bytes now, bytes at the last sync]
        self.folders = set()
        self.durable = {}  # names at the last sync of their folder
        self.at = {}

    def content(self, path):
        if path not in self.files:
            self.files[path] = len(self.contents)
            self.contents[self.files[path]] = [b"", None]
        return self.contents[self.files[path]]

    def apply(self, operation):
        kind, path = operation[:2]
        if kind == "mkdir":
            self.folders.add(path)
        elif kind == "create":
            self.content(path)
        elif kind == "truncate":
            content = self.content(path)
            content[0] = content[0][: operation[2]].ljust(operation[2], b"\0")
        elif kind == "write":
            content, offset = self.content(path), self.at.get((path, operation[2]))
            offset = len(content[0]) if offset is None else offset
            content[0] = content[0][:offset].ljust(offset, b"\0") + operation[3] + content[0][offset + len(operation[3]) :]
            self.at[(path, operation[2])] = offset + len(operation[3])
        elif kind == "pwrite":
            content, offset = self.content(path), operation[3]
            content[0] = content[0][:offset].ljust(offset, b"\0") + operation[2] + content[0][offset + len(operation[2]) :]
        elif kind == "seek":
            self.at[(path, operation[2])] = operation[3]
        elif kind == "close":
            self.at.pop((path, operation[2]), None)
        elif kind == "rename" and path in self.files:
            self.files[operation[2]] = self.files.pop(path)
        elif kind == "unlink":
            self.files.pop(path, None)
        elif kind == "sync":
            if path in self.files:
                content = self.content(path)
                content[1] = content[0]
            else:
                # A folder: its current names are now durable.
                below = {p: n for p, n in self.files.items() if os.path.dirname(p) == path}
                self.durable = {p: n for p, n in self.durable.items() if os.path.dirname(p) != path} | below

    def lay_out(self, how):
        """Name and bytes of every file. `all`: everything arrived (a kill). `data`: names
        arrived, unsynced bytes did not. `half`: half of the unsynced bytes did. `names`: neither
        unsynced bytes nor unsynced names arrived, for files that are synced with their folder at
        all."""
        names = self.files
        if how == "names":
            synced = {os.path.dirname(path) for path in self.durable}
            names = {p: n for p, n in self.files.items() if os.path.dirname(p) not in synced} | self.durable
        for path, number in names.items():
            now, synced = self.contents[number]
            if how == "all":
                yield path, now
            else:
                synced = synced or b""
                more = now[len(synced) :] if now.startswith(synced) else b""
                yield path, synced + (more[: len(more) // 2] if how == "half" else b"")
