#!/usr/bin/env python3
"""Converts a folder with ct2-transformers-converter, translates lines with CTranslate2 and with
`regard translate` on the converted folder, and prints the share of lines that are the same, in f32
and int8, with beams of 1 and 4.

    pip install ctranslate2 transformers torch
    python tools/compare_ctranslate2.py --model model --src test.en [--lines 1000] [--regard target/release/regard] [--differences 5]

The folder must have a tokenizer.json: one that regard wrote, or one of NLLB-200 (with --source-lang
and --target-lang).
"""
import argparse, os, pathlib, subprocess, tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import ctranslate2
from ctranslate2.converters import TransformersConverter
from tokenizers import Tokenizer
from transformers import AutoTokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--src", required=True)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--regard", default="target/release/regard")
    parser.add_argument("--source-lang")
    parser.add_argument("--target-lang")
    parser.add_argument("--differences", type=int, default=3, help="how many lines that differ to print")
    flags = parser.parse_args()
    lines = [line.strip() for line in open(flags.src, encoding="utf-8")]
    lines = [line for line in lines if line][: flags.lines]
    options = {"src_lang": flags.source_lang} if flags.source_lang else {}
    tokenizer = AutoTokenizer.from_pretrained(flags.model, **options)
    plain = Tokenizer.from_file(str(pathlib.Path(flags.model) / "tokenizer.json"))
    sources = [tokenizer.convert_ids_to_tokens(tokenizer(line).input_ids) for line in lines]
    languages = [f"--source-lang={flags.source_lang}", f"--target-lang={flags.target_lang}"] if flags.source_lang else []
    for quantization in [None, "int8"]:
        with tempfile.TemporaryDirectory() as folder:
            TransformersConverter(flags.model, copy_files=["tokenizer.json"]).convert(folder, quantization=quantization, force=True)
            translator = ctranslate2.Translator(folder, compute_type="default", inter_threads=1, intra_threads=2)
            for beams in [1, 4]:
                prefix = [[flags.target_lang]] * len(sources) if flags.target_lang else None
                found = translator.translate_batch(sources, target_prefix=prefix, beam_size=beams, length_penalty=1, max_decoding_length=256, max_batch_size=32)
                theirs = []
                for one in found:
                    tokens = [token for token in one.hypotheses[0] if token != flags.target_lang]
                    theirs.append(plain.decode([plain.token_to_id(token) for token in tokens]).strip())
                command = [flags.regard, "translate", "--model", folder, "--no-split", "--beam", str(beams), "--length-penalty", "1", "--max-length", "256", *languages]
                ours = subprocess.run(command, input="\n".join(lines) + "\n", text=True, capture_output=True, check=True).stdout.split("\n")[: len(lines)]
                differ = [(line, a, b) for line, a, b in zip(lines, theirs, ours) if a != b.strip()]
                print(f"{quantization or 'f32'}, {beams} beams: {len(lines) - len(differ)} of {len(lines)} lines the same ({100 * (1 - len(differ) / len(lines)):.2f} %)")
                for line, a, b in differ[: flags.differences]:
                    print(f"  {line}\n    CTranslate2: {a}\n    regard:      {b}")


if __name__ == "__main__":
    main()
