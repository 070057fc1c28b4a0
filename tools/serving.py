"""Runs `regard serve` on a free port as a context manager."""

import contextlib
import re
import subprocess


@contextlib.contextmanager
def serving(regard, model, *flags):
    """The process and its address, such as 127.0.0.1:40000. A server that fails, or does not
    exit on request, is an error."""
    command = [regard, "serve", "--model", model, "--port", "0", "--log", "quiet", *flags]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    said = []
    try:
        for line in server.stderr:
            said.append(line)
            found = re.search(r"serving on http://(\S+)", line)
            if found:
                break
        else:
            raise RuntimeError(f"the server did not start: {''.join(said).strip()}")
        yield server, found.group(1)
    finally:
        server.terminate()
        try:
            _, rest = server.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            server.kill()
            raise
    if server.returncode != 0:
        raise RuntimeError(f"the server ended with {server.returncode}: {rest.strip()}")
