"""The reader `transformers` of tools/differential.py: model folders in the MarianMT format whose
config.json and generation_config.json are damaged.

The weights are those of the goldens (crates/regard-core/tests/goldens/generate); the vocabulary has
a word for each id, so that a translation shows its ids.
"""

import functools
import json
import os
import pathlib
import random
import subprocess
import tempfile

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "crates/regard-core/tests/goldens/generate"
WORDS, END, UNKNOWN, PAD = 40, 0, 1, 39
SPECIAL = {END: "</s>", UNKNOWN: "<unk>", PAD: "<pad>"}
GENERATION = {
    "num_beams": 4, "max_length": 12, "bad_words_ids": [[PAD]], "forced_eos_token_id": END, "renormalize_logits": True,
    "decoder_start_token_id": PAD, "eos_token_id": END, "pad_token_id": PAD,
}
SOURCES = [[5, 7, 9], [2], [30, 31, 32, 33, 34, 3], [11, 12, 11, 12], [38, 4], [21, 8, 15, 2, 27]]

# Without these, the two have different defaults: the limit of the length, the number of beams, and
# whether the end token of config.json or of the vocabulary counts.
NEEDED = {"max_length", "max_new_tokens", "num_beams", "eos_token_id"}

# Values that a setting may or may not have; not `do_sample`, whose results are random, and no
# other word as the forced end, which we do not force.
VALUES = {
    "activation_function": ["relu", "gelu", "gelu_new", "silu", "swish", "tanh", "Relu", "", None, 3],
    "bad_words_ids": [None, [], [[PAD], [26]], [[PAD], [26, 26]], [[26, 26, 7], [END]], [26], [[]], [[WORDS]], "x"],
    "decoder_start_token_id": [END, 1, 5, PAD, WORDS, -1, None, "0"],
    "early_stopping": [True, False, "never", "sometimes", None, 1],
    "encoder_attention_heads": [1, 2, 3, 4, 8, 16, 0, -2, 2.0, None],
    "eos_token_id": [END, 26, [END, 26], -1, WORDS],
    "encoder_no_repeat_ngram_size": [0, 1, 2],
    "exponential_decay_length_penalty": [None, [3, 1.5]],
    "forced_bos_token_id": [None, 11, 26, WORDS, -1, [11]],
    "forced_eos_token_id": [None, END, [END]],
    "length_penalty": [0, 0.0, 0.6, 1, 2.0, -1.0, "1", None],
    "max_length": [2, 3, 6, 20, 40, 1, 0, -1, 6.0],
    "max_new_tokens": [1, 5, 11, 0, -3],
    "max_position_embeddings": [64, 63, 128, 512, 4, 0, None],
    "min_length": [0, 5, 7, 12, -1, None],
    "min_new_tokens": [0, 5, 7, None],
    "model_type": ["marian", "bart", "m2m_100", "t5", "", None],
    "no_repeat_ngram_size": [0, 1, 2, 3, 100, -1, None, 2.0],
    "normalize_before": [True, False],
    "normalize_embedding": [True, False, None],
    "num_beam_groups": [1, 2],
    "num_beams": [1, 2, 6, 0, -1, 40, 2.0],
    "num_return_sequences": [1, 2],
    "pad_token_id": [PAD, END, 1, WORDS, None],
    "renormalize_logits": [True, False, None, 1],
    "repetition_penalty": [0.7, 1.0, 1.5, 0, -1.0, None, "2"],
    "scale_embedding": [True, False, None, 1],
    "share_encoder_decoder_embeddings": [True, False, None],
    "static_position_embeddings": [True, False],
    "suppress_tokens": [None, [26], [26, 2]],
    "begin_suppress_tokens": [None, [26]],
    "tie_word_embeddings": [True, False, None],
}
for _key in ["d_model", "decoder_attention_heads", "decoder_ffn_dim", "decoder_layers", "decoder_vocab_size", "encoder_ffn_dim", "encoder_layers", "vocab_size"]:
    VALUES[_key] = [1, 2, 3, 8, 12, 16, 39, 40, 41, 0, -1, None, "2", 2.5, 2**40]


def damaged(rng, settings, keys):
    """The text of a settings file with a few keys changed, removed or added."""
    settings = dict(settings)
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        key = rng.choice(keys)
        if rng.random() < 0.15 and settings:
            settings.pop(rng.choice(sorted(settings.keys() - NEEDED)))
        else:
            settings[key] = rng.choice(VALUES.get(key, [None, 0, "", [], {}]))
    text = json.dumps(settings)
    if rng.random() < 0.04:
        text = rng.choice([text[:-1], text + "x", "[]", "null", "", text.replace(":", "", 1), "\ufeff" + text])
    return text


def make(rng, _):
    model = rng.choice(sorted(folder.name for folder in GOLDENS.iterdir() if folder.is_dir()))
    config = json.loads((GOLDENS / model / "config.json").read_text())
    generation = [key for key in VALUES if key in GENERATION or key not in config and key not in ("normalize_before", "normalize_embedding", "static_position_embeddings")]
    shape = [key for key in VALUES if key not in generation] + ["normalize_embedding"]
    return json.dumps({
        "model": model, "config.json": damaged(rng, config, shape),
        "generation_config.json": damaged(rng, GENERATION, generation),
    }).encode()


def folder_of(file, at):
    """Writes the model folder that a file describes."""
    at = pathlib.Path(at)
    parts = json.loads(file)
    for name in ["config.json", "generation_config.json"]:
        (at / name).write_text(parts[name])
    (at / "model.safetensors").symlink_to(GOLDENS / parts["model"] / "model.safetensors")
    words = {SPECIAL.get(id, f"w{id}"): id for id in range(WORDS)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    (at / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [{"id": id, "content": text, **flags} for id, text in SPECIAL.items()],
        "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": SPECIAL[UNKNOWN]},
    }))
    return at


@functools.cache
def library():
    """`transformers` and PyTorch, loaded once, before the child processes that read the files."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    return torch, transformers


def peer(file):
    torch, transformers = library()
    with tempfile.TemporaryDirectory() as at:
        model, report = transformers.MarianMTModel.from_pretrained(folder_of(file, at), output_loading_info=True)
    lacking = [str(report[part]) for part in ("missing_keys", "mismatched_keys", "error_msgs") if report[part]]
    if lacking:
        raise ValueError("weights that do not fit: " + " ".join(lacking))
    answers = []
    for source in SOURCES:
        ids = model.generate(torch.tensor([[*source, END]]))[0].tolist()[1:]
        answers.append(" ".join(f"w{id}" for id in ids if id not in SPECIAL))
    return answers


class Transformers:
    name, ending, make, peer = "transformers", "json", staticmethod(make), staticmethod(peer)

    def __init__(self, options):
        self.options = options
        library()

    def ours(self, path):
        lines = "".join(" ".join(f"w{id}" for id in source) + "\n" for source in SOURCES)
        with tempfile.TemporaryDirectory() as at:
            command = [self.options.regard, "translate", "--model", folder_of(path.read_bytes(), at), "--threads", "1", "--no-split", "--json"]
            run = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60)
        if "panicked" in run.stderr or run.returncode not in (0, 1):
            raise self.options.broken(run.stderr)
        if run.returncode == 1:
            raise self.options.refused(run.stderr)
        answers = [json.loads(line) for line in run.stdout.splitlines()]
        if all("guard" in answer for answer in answers):
            raise self.options.refused("every line was translated again by the guard, so that there is nothing to compare")
        # The guard translates a line again with other settings, which `transformers` does not do.
        return [None if "guard" in answer else answer["translations"][0]["text"] for answer in answers]

    def difference(self, theirs, ours, _):
        wrong = [(s, t, o) for s, t, o in zip(SOURCES, theirs, ours, strict=True) if o is not None and t != o]
        return f"{wrong[0][0]}: {wrong[0][1]!r} and {wrong[0][2]!r}" if wrong else None
