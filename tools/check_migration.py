#!/usr/bin/env python3
"""Runs the equivalent programs for regard, transformers, ctranslate2 and argostranslate in
docs/python.md.

    python3 tools/check_migration.py MODEL

MODEL is a MarianMT folder for English and French with one of our BPE vocabularies (tokenizer.json).
Each program runs in its own folder, in which `en-fr` is the model (and `en-fr-ct2` its conversion);
programs whose package is not installed are reported and skipped. All must print the same
translations. For argostranslate, the script builds a package: the conversion, the vocabulary as a
SentencePiece model, and a blank spaCy pipeline, which splits sentences without a model to download.
"""
import importlib.util, json, os, pathlib, re, shutil, subprocess, sys, tempfile, zipfile

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "python.md"


def sentencepiece_model(tokenizer_json, to):
    """Converts a BPE vocabulary to a SentencePiece model: pieces with the ranks of their merges
    as scores."""
    from sentencepiece import sentencepiece_model_pb2 as protobuf

    model = json.loads(tokenizer_json.read_text(encoding="utf-8"))["model"]
    assert model["type"] == "BPE", model["type"]
    merged = {"".join(merge if isinstance(merge, list) else merge.split(" ")): i for i, merge in enumerate(model["merges"])}
    proto = protobuf.ModelProto()
    kinds = protobuf.ModelProto.SentencePiece
    for piece, _ in sorted(model["vocab"].items(), key=lambda item: item[1]):
        special = {"<unk>": kinds.UNKNOWN, "</s>": kinds.CONTROL, "<pad>": kinds.CONTROL}.get(piece)
        byte = kinds.BYTE if re.fullmatch(r"<0x[0-9A-F]{2}>", piece) else None
        score = -float(merged.get(piece, len(merged)))
        proto.pieces.add(piece=piece, score=0.0 if special or byte else score, type=special or byte or kinds.NORMAL)
    proto.trainer_spec.model_type = protobuf.TrainerSpec.BPE
    proto.trainer_spec.byte_fallback = any(piece.type == kinds.BYTE for piece in proto.pieces)
    names = [piece.piece for piece in proto.pieces]
    proto.trainer_spec.unk_id, proto.trainer_spec.eos_id = names.index("<unk>"), names.index("</s>")
    proto.trainer_spec.bos_id, proto.trainer_spec.pad_id = -1, names.index("<pad>")
    proto.normalizer_spec.name = "identity"
    to.write_bytes(proto.SerializeToString())


def argos_environment(folder):
    """Installs the converted model as a package; returns the environment in which argostranslate
    finds it."""
    import spacy

    package = folder / "translate-en_fr"
    package.mkdir()
    shutil.copytree(folder / "en-fr-ct2", package / "model")
    # Packages append the end token to their sources; with transformers, the tokenizer does.
    config = json.loads((package / "model" / "config.json").read_text())
    (package / "model" / "config.json").write_text(json.dumps(dict(config, add_source_eos=True)))
    sentencepiece_model(folder / "en-fr" / "tokenizer.json", package / "sentencepiece.model")
    spacy.blank("en").to_disk(package / "spacy")
    metadata = {"package_version": "1.0", "argos_version": "1.9", "from_code": "en", "from_name": "English", "to_code": "fr", "to_name": "French"}
    (package / "metadata.json").write_text(json.dumps(metadata))
    with zipfile.ZipFile(folder / "en_fr.argosmodel", "w") as archive:
        for file in package.rglob("*"):
            archive.write(file, file.relative_to(folder))
    # The location of the pipeline that would otherwise be downloaded.
    cached = folder / "home" / ".local" / "cache" / "argos-translate" / "spacy" / "senter"
    cached.mkdir(parents=True)
    (cached / "model").touch()
    data = folder / "home" / ".local" / "share" / "argos-translate" / "packages"
    environment = dict(
        os.environ, HOME=str(folder / "home"), ARGOS_PACKAGES_DIR=str(data), ARGOS_CHUNK_TYPE="SPACY", ARGOS_DEVICE_TYPE="cpu"
    )
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        environment.pop(name, None)
    install = "import argostranslate.package as p; p.install_from_path('en_fr.argosmodel')"
    subprocess.run([sys.executable, "-c", install], cwd=folder, env=environment, check=True)
    return environment


def main():
    model = pathlib.Path(sys.argv[1]).resolve()
    section = PAGE.read_text(encoding="utf-8").split("## Coming from other packages")[1]
    programs = re.findall(r"^(\w+)(?:,[^\n]*)?:\n\n```python\n(.*?)```", section, re.S | re.M)
    assert [name for name, _ in programs] == ["regard", "transformers", "ctranslate2", "argostranslate"], programs
    printed = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "en-fr").symlink_to(model)
        for name, program in programs:
            if importlib.util.find_spec(name) is None:
                print(f"{name}: not installed")
                continue
            environment = None
            if name == "ctranslate2":
                convert = [sys.executable, "-m", "ctranslate2.converters.transformers", "--model", "en-fr"]
                subprocess.run([*convert, "--output_dir", "en-fr-ct2"], cwd=folder, check=True)
            if name == "argostranslate":
                environment = argos_environment(folder)
            run = subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True)
            if run.returncode:
                sys.exit(f"{name}:\n{run.stderr}")
            print(f"{name}:\n{run.stdout}", end="")
            printed[name] = [line.rsplit(" ", 1)[0] for line in run.stdout.splitlines()]
    if len(set(map(tuple, printed.values()))) != 1:
        sys.exit("the translations differ")


main()
