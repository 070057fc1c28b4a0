"""Threads share a translator, the GIL is free meanwhile, and memory stays flat."""

import threading
import time

import pytest
from conftest import pairs


def test_threads_get_what_one_gets(translator):
    sources = [source for source, _ in pairs()]
    settings = [dict(), dict(beam=1), dict(nbest=2), dict(alignment=True, beam=2)]
    wanted = [translator.translate(sources[:20], **keywords) for keywords in settings]
    failures = []

    def work(thread):
        try:
            for turn in range(12):
                keywords, right = settings[(thread + turn) % 4], wanted[(thread + turn) % 4]
                part = (thread * 3 + turn) % 17
                assert translator.translate(sources[part : part + 3], **keywords) == right[part : part + 3]
                if turn % 4 == 0:
                    assert "".join(translator.stream(sources[part])) == wanted[1][part]
                    translator.attention(sources[part])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_python_runs_while_it_translates(translator):
    sources = [source for source, _ in pairs()] * 20
    ticks, done = [], threading.Event()

    def clock():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=clock)
    thread.start()
    start = time.perf_counter()
    translator.translate(sources)
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    # With the GIL held there would be one tick or two.
    assert len(ticks) > 10 or seconds < 0.05


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_memory_is_flat(translator):
    try:
        resident()
    except OSError:
        pytest.skip("needs /proc")
    sources = [source for source, _ in pairs()]

    def calls(count):
        for i in range(count):
            translator.translate(sources[i % len(sources)], nbest=2, alignment=True)
            if i % 10 == 0:
                translator.attention(sources[i % len(sources)])
                list(translator.stream(sources[i % len(sources)]))
                with pytest.raises(ValueError):
                    translator.translate("a", beam=0)

    calls(500)
    before = resident()
    calls(2000)
    grown = resident() - before
    assert grown < 4 << 20, f"{grown} bytes more after 2,000 calls"
