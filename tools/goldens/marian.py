#!/usr/bin/env python3
"""Writes crates/regard-core/tests/goldens/marian/: small MarianMT folders of random weights, as
`transformers` saves them, and what they compute.

Each case is a folder of save_pretrained, with a tokenizer.json made here, and golden.json: ids, the
encoder's output and the logits. Shared and separate embeddings, every activation, different depths,
2 to 16 heads, heads and widths of the decoder's own, f32 and f16. tests/formats.rs reproduces them.

    pip install torch transformers
    python tools/goldens/marian.py [CASE…]
"""
import json, os, pathlib, shutil, sys
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import MarianConfig, MarianMTModel

WORDS = 40
SOURCE = [[3, 14, 15, 9, 2, 6, 5, 0], [35, 8, 0]]
TARGET = [[WORDS - 1, 27, 18, 28, 4], [WORDS - 1, 31, 7]]  # from the start token on

CASES = {  # name: (activation, width, heads, encoder layers, decoder layers, shared, tied, scaled, precision, decoder's heads and feed-forward)
    "swish-shared": ("swish", 8, 4, 2, 1, True, True, True, torch.float32),
    "relu-shared": ("relu", 16, 16, 1, 2, True, True, True, torch.float32),
    "gelu-separate": ("gelu", 8, 2, 1, 1, False, True, False, torch.float32),
    "relu-untied": ("relu", 8, 8, 1, 1, False, False, True, torch.float32),
    "swish-output": ("swish", 8, 2, 1, 1, True, False, True, torch.float32),
    "swish-half": ("swish", 8, 2, 1, 1, True, True, True, torch.float16),
    "relu-two-sizes": ("relu", 8, 2, 1, 2, True, True, True, torch.float32, 4, 20),
}


def tokenizer_json(mark):
    """A vocabulary of single letters; `mark` tells two of them apart."""
    pieces = ["</s>", "<unk>", "\u2581"] + [chr(ord("a") + i) for i in range(26)] + list("0123456789")
    vocab = {piece: i for i, piece in enumerate(pieces[: WORDS - 1 - len(mark)] + list(mark) + ["<pad>"])}
    special = [{"id": vocab[t], "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
               for t in ["</s>", "<unk>", "<pad>"]]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                           "special_tokens": {"</s>": {"id": "</s>", "ids": [0], "tokens": ["</s>"]}}},
        "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": []},
    }


def make(folder, activation, width, heads, encoder, decoder, shared, tied, scaled, precision, decoder_heads=None, decoder_ffn=12):
    torch.manual_seed(len(folder.name) + heads)
    config = MarianConfig(
        vocab_size=WORDS, decoder_vocab_size=WORDS, d_model=width, encoder_layers=encoder, decoder_layers=decoder,
        encoder_attention_heads=heads, decoder_attention_heads=decoder_heads or heads, encoder_ffn_dim=12, decoder_ffn_dim=decoder_ffn,
        activation_function=activation, max_position_embeddings=64, scale_embedding=scaled,
        share_encoder_decoder_embeddings=shared, tie_word_embeddings=tied, pad_token_id=WORDS - 1,
        decoder_start_token_id=WORDS - 1, eos_token_id=0, forced_eos_token_id=0)
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                # Large enough that a wrong sign, scale or order shows in the logits.
                parameter.normal_(1.0 if "norm.weight" in name else 0.0, 0.4)
        for embedding in [model.model.get_encoder().embed_tokens, model.model.get_decoder().embed_tokens]:
            embedding.weight[WORDS - 1] = 0
        model.final_logits_bias.normal_(0, 0.5)
        model.to(precision)
        model.save_pretrained(folder)
        # Read back, because the positions above have been rounded with the weights.
        model = MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval()
        sentences = []
        for source, target in zip(SOURCE, TARGET):
            out = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]))
            sentences.append({"source": source, "target": target, "encoded": rounded(out.encoder_last_hidden_state), "logits": rounded(out.logits)})
    generation = json.loads((folder / "generation_config.json").read_text())
    generation.pop("transformers_version", None)
    generation.update(num_beams=6, bad_words_ids=[[WORDS - 1]], max_length=64)
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=1) + "\n")
    write = lambda name, value: (folder / name).write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
    write("tokenizer.json", tokenizer_json(""))
    if not shared:
        write("target_tokenizer.json", tokenizer_json("!"))
    write("tokenizer_config.json", {"source_lang": "aa", "target_lang": "bb"})
    write("golden.json", {"scaled": scaled, "sentences": sentences})


def rounded(tensor):
    return [float(f"{x:.6g}") for x in tensor.flatten().tolist()]


if __name__ == "__main__":
    root = pathlib.Path(__file__).parents[2] / "crates/regard-core/tests/goldens/marian"
    for name in sys.argv[1:] or CASES:
        folder = root / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder, *CASES[name])
        print(name, sum(f.stat().st_size for f in folder.iterdir()), "bytes:", *sorted(f.name for f in folder.iterdir()))
