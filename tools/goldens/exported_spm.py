"""Has the `sentencepiece` package segment what Regard wrote:
crates/regard-core/tests/goldens/sentencepiece/exported.json.

    REGARD_WRITE_GOLDENS=FOLDER cargo test -p regard-core package_has_read  # FOLDER/bpe.spm and unigram.spm
    pip install sentencepiece==0.2.2
    python tools/goldens/exported_spm.py FOLDER

The two files are those of crates/regard-core/tests/goldens/tokenizer_{bpe,unigram}.json. The
package must give the ids that tokenizer_python.json has for every text there, except where a table
of rules cannot say what is wanted: a NUL, and marks that are not in Unicode's order or are two at
once. The golden has the checksums of the files, so that a test knows them again, and the places of
those texts.
"""
import json, pathlib, sys, unicodedata, zlib

import sentencepiece

GOLDENS = pathlib.Path(__file__).resolve().parents[2] / "crates" / "regard-core" / "tests" / "goldens"


def unordered(text):
    """Whether normalisation to NFD reorders marks, other than by decomposing."""
    plain = "".join(unicodedata.normalize("NFD", c) for c in text)
    return unicodedata.normalize("NFD", text) != plain


def main(folder):
    known = json.loads((GOLDENS / "tokenizer_python.json").read_text("utf-8"))
    golden = {}
    for name in ["bpe", "unigram"]:
        file = (pathlib.Path(folder) / f"{name}.spm").read_bytes()
        processor = sentencepiece.SentencePieceProcessor(model_proto=file)
        assert (processor.eos_id(), processor.unk_id(), processor.bos_id()) == (0, 1, -1)
        assert processor.get_piece_size() % 8 == 0
        apart = []
        for i, case in enumerate(known[name]):
            text, want = case["text"], case["ids"]
            if processor.encode(text) + [0] == want:
                assert processor.decode(want[:-1]) == case["decoded"], (text, processor.decode(want[:-1]), case["decoded"])
                continue
            assert "\0" in text or "\u0344" in text or unordered(text), (text, processor.encode(text), want)
            apart.append(i)
        print(f"{name}: {len(known[name])} texts, {len(apart)} of which cannot be the same")
        golden[name] = {"bytes": len(file), "crc32": zlib.crc32(file), "apart": apart}
    out = json.dumps(golden, separators=(",", ":"))
    (GOLDENS / "sentencepiece" / "exported.json").write_text(out + "\n", "utf-8")


main(sys.argv[1])
