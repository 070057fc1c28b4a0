"""Training, evaluation, conversion, the server, the command."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
import regard
from conftest import SETTINGS, pairs


def test_training_reports_its_progress(model, events):
    steps = [event for event in events if event["kind"] == "step"]
    assert [event["step"] for event in steps] == list(range(1, 301))
    assert steps[-1]["loss"] < 0.5 * steps[0]["loss"] and steps[0]["total"] == 300
    validations = [event for event in events if event["kind"] == "validation"]
    assert validations and validations[-1]["bleu"] > 50
    assert any(event["kind"] == "message" for event in events)


def test_an_exception_of_the_callback_saves_the_run(folder, corpus):
    def progress(event):
        if event["kind"] == "step" and event["step"] == 3:
            raise LookupError("enough")

    out = folder / "stopped"
    with pytest.raises(LookupError, match="enough"):
        regard.train(out, src=corpus.src, tgt=corpus.tgt, preset="tiny", set=SETTINGS, steps=20, progress=progress)
    assert regard.Translator(out).translate("The cat sleeps.") is not None
    result = regard.train(out, resume=True)
    assert result.steps == 20 and result.model == str(out)


# Where the tests run in the background of a shell, Ctrl-C is ignored and that is inherited.
SCRIPT = """
import regard, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
def progress(event):
    if event["kind"] == "step" and event["step"] == 2:
        print("running", flush=True)
try:
    regard.train(sys.argv[1], src=sys.argv[2], tgt=sys.argv[3], preset="tiny", steps=100000, progress=progress)
except KeyboardInterrupt:
    print("interrupted", regard.Translator(sys.argv[1]).info()["d_model"], flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_saves_the_run(folder, corpus):
    out = folder / "interrupted"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, out, corpus.src, corpus.tgt], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted 128\n"
    assert process.wait() == 0


def test_evaluation_is_that_of_the_command(translator, model, folder, command):
    sources, references = zip(*list(pairs())[:50])
    references = [text.replace("petit", "grand") for text in references]
    (folder / "test.en").write_text("\n".join(sources) + "\n", encoding="utf-8")
    (folder / "test.fr").write_text("\n".join(references) + "\n", encoding="utf-8")
    printed = command(
        "evaluate", "--model", model, "--src", folder / "test.en", "--ref", folder / "test.fr", "--json", "--beam", 2
    )
    wanted = json.loads(printed.stdout)
    for found in (
        regard.evaluate(translator, sources, references, beam=2),
        regard.evaluate(model, folder / "test.en", folder / "test.fr", beam=2),
        regard.evaluate(model, str(folder / "test.en"), [folder / "test.fr"], beam=2),
    ):
        assert list(found) == ["bleu", "chrf", "ter"]
        for name, score in found.items():
            assert score.score == pytest.approx(wanted[name]["score"], abs=1e-4) and 0 < score.score < 100
            assert score.signature == wanted[name]["signature"]
        assert len(found.translations) == 50 and found.seconds > 0 and found.target_tokens_per_s > 0
    assert regard.evaluate(translator, sources, references, metric="chrf++")["chrf++"].name == "chrF2++"


def test_conversions(model, folder, corpus):
    small = regard.quantize(model, folder / "small")
    assert regard.Translator(small).translate("The cat sleeps.") == "Le chat dort."
    mean = regard.average([model, model], folder / "mean")
    assert regard.Translator(mean).translate("The cat sleeps.") == "Le chat dort."
    words = regard.shortlist(model, corpus.src, corpus.tgt, folder / "words.txt", frequent=20)
    assert regard.Translator(model).translate("The cat sleeps.", shortlist=words) == "Le chat dort."


def test_export_to_marian(folder, corpus):
    student = folder / "student"
    regard.train(student, src=corpus.src, tgt=corpus.tgt, preset="student", steps=2, set={"tokenizer.size": 400})
    marian = regard.export(student, "marian", folder / "marian")
    text = "The cat sleeps."
    assert regard.Translator(marian).tokenize(text) == regard.Translator(student).tokenize(text)


def test_a_server_in_the_background(model):
    with regard.serve(model, port=0, log="quiet") as server:
        assert server.running and server.url == f"http://127.0.0.1:{server.port}"
        body = json.dumps({"q": "The cat sleeps.", "source": "en", "target": "fr"}).encode()
        request = urllib.request.Request(server.url + "/translate", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer)["translatedText"] == "Le chat dort."
        with pytest.raises(regard.RegardError, match=f"{server.port}.*choose another host or port"):
            regard.serve(model, port=server.port)
    assert not server.running and "stopped" in repr(server)
    server.stop()
    with pytest.raises(ValueError, match="prot"):
        regard.serve(model, prot=0)
    again = regard.serve(model, port=0)
    threading.Timer(0.3, again.stop).start()
    start = time.monotonic()
    again.wait()
    assert time.monotonic() - start < 10


def test_the_command_is_installed(command):
    assert command("--version").stdout == f"regard {regard.__version__}\n"
    assert "Usage: regard" in command("--help").stdout
    wrong = command("translate", "--model", "no-such-model", check=False)
    assert wrong.returncode == 1 and wrong.stderr.startswith("regard: ")
    assert command("translate", check=False).returncode == 2
    module = subprocess.run([sys.executable, "-m", "regard", "--version"], capture_output=True, text=True)
    assert module.stdout == f"regard {regard.__version__}\n"
