#!/usr/bin/env python3
"""Writes crates/regard-core/tests/goldens/generate/: small MarianMT models of random weights and
what `transformers`' generate says with them.

A folder a model (config.json, model.safetensors), and cases.json: for each case a model, sources,
settings of the search, and the ids and scores that come out, the start token and padding left out.
Sentences of which single and double precision disagree are left out: they hang on the last bit.
tests/generate.rs reproduces all of it.

    pip install torch transformers
    python tools/goldens/generate.py
"""
import json, os, pathlib, random, shutil
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import MarianConfig, MarianMTModel, logging

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(1)
WORDS, END, PAD = 40, 0, 39
SENTENCES = 4

MODELS = {  # name: (activation, width, heads, encoder layers, decoder layers, shared, tied, bias of the end)
    "swish-shared": ("swish", 16, 2, 2, 1, True, True, 4.7),
    "relu-shared": ("relu", 16, 16, 1, 2, True, True, 2.5),
    "gelu-separate": ("gelu", 16, 4, 1, 1, False, True, 0.8),
    "swish-untied": ("swish", 16, 8, 1, 1, False, False, 1.5),
}

# What is not said here: 4 beams, at most 12 tokens, the end forced, padding banned, probabilities
# normalised again.
SETTINGS = [
    {},
    {"num_beams": 1},
    {"num_beams": 2},
    {"num_beams": 6, "num_return_sequences": 6},
    {"num_beams": 2, "num_return_sequences": 2, "length_penalty": 0.0},
    {"length_penalty": 0.6, "num_return_sequences": 2},
    {"length_penalty": 2.0},
    {"length_penalty": -1.0},
    {"early_stopping": True, "num_return_sequences": 3},
    {"early_stopping": "never", "num_return_sequences": 3},
    {"early_stopping": "never", "length_penalty": 2.0, "num_beams": 6},
    {"early_stopping": "never", "length_penalty": -0.5},
    {"max_length": 6},
    {"max_length": 6, "num_beams": 1},
    {"max_length": 6, "forced_eos_token_id": None, "num_return_sequences": 4},
    {"max_length": 6, "forced_eos_token_id": None, "num_beams": 1},
    {"max_length": 2},
    {"max_new_tokens": 5},
    {"min_length": 7},
    {"min_new_tokens": 7, "num_beams": 1},
    {"min_length": 7, "renormalize_logits": False},
    {"renormalize_logits": False},
    {"renormalize_logits": False, "max_length": 7, "num_return_sequences": 4},
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2, "num_beams": 6},
    {"no_repeat_ngram_size": 2, "num_beams": 1},
    {"no_repeat_ngram_size": 3, "renormalize_logits": False},
    {"repetition_penalty": 1.5},
    {"repetition_penalty": 1.5, "renormalize_logits": False},
    {"repetition_penalty": 0.7, "num_return_sequences": 2},
    {"repetition_penalty": 1.8, "num_beams": 1},
    {"repetition_penalty": 0.6, "num_beams": 1, "renormalize_logits": False},
    {"forced_bos_token_id": 11},
    {"forced_bos_token_id": 11, "renormalize_logits": False, "num_return_sequences": 2},
    {"bad_words_ids": [[PAD], [7], [END], [5, 6]]},
    {"bad_words_ids": "frequent", "num_beams": 2},
    {"bad_words_ids": "frequent", "renormalize_logits": False},
    {"bad_words_ids": "frequent", "num_beams": 1},
    {"num_beams": 6, "min_length": 5, "max_length": 9, "no_repeat_ngram_size": 2, "repetition_penalty": 1.2, "length_penalty": 0.8,
     "early_stopping": True, "num_return_sequences": 3},
]


def make(folder, activation, width, heads, encoder, decoder, shared, tied, end):
    torch.manual_seed(len(folder.name) + heads)
    config = MarianConfig(
        vocab_size=WORDS, decoder_vocab_size=WORDS, d_model=width, encoder_layers=encoder, decoder_layers=decoder,
        encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=12, decoder_ffn_dim=12,
        activation_function=activation, max_position_embeddings=64, scale_embedding=True, pad_token_id=PAD,
        share_encoder_decoder_embeddings=shared, tie_word_embeddings=tied, decoder_start_token_id=PAD, eos_token_id=END, forced_eos_token_id=END)
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.normal_(1.0 if "norm.weight" in name else 0.0, 0.4)
        for embedding in [model.model.get_encoder().embed_tokens, model.model.get_decoder().embed_tokens]:
            embedding.weight[PAD] = 0
        model.final_logits_bias.normal_(0, 0.7)
        # So that sentences end early and late: how likely the end is varies more than other words
        # do.
        model.lm_head.weight[END] *= 2.5
        model.final_logits_bias[0, END] = end
        model.final_logits_bias[0, PAD] = 1.0
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return MarianMTModel.from_pretrained(folder).eval(), MarianMTModel.from_pretrained(folder, dtype=torch.float64).eval()


def frequent_pairs(model, sources):
    """Pairs and triples of ids that come out if nothing bans them, and the first id behind the
    start."""
    banned = [[PAD]]
    for source in sources:
        ids = [PAD] + generate(model, source, {})[0]["ids"]
        banned += [ids[:2]] + [ids[i : i + 3] for i in range(1, len(ids) - 2, 3)]
    return [list(x) for x in sorted({tuple(b) for b in banned})]


def generate(model, source, settings):
    """The hypotheses, best first, or None where there are too few."""
    settings = {"num_beams": 4, "max_length": 12, "forced_eos_token_id": END, "bad_words_ids": [[PAD]], "renormalize_logits": True, **settings}
    if "max_new_tokens" in settings:
        settings["max_length"] = None
    # A keyword of None means "as the model has it".
    model.generation_config.forced_eos_token_id = settings.pop("forced_eos_token_id")
    with torch.no_grad():
        out = model.generate(torch.tensor([source]), return_dict_in_generate=True, output_scores=True, do_sample=False, **settings)
    found = []
    scores = [None] if settings["num_beams"] == 1 else out.sequences_scores.tolist()
    for ids, score in zip(out.sequences.tolist(), scores):
        if score is not None and score < -1e8:
            return None
        ids = ids[1:]
        while ids and ids[-1] == PAD:
            ids.pop()
        ended = END in ids
        found.append({"ids": ids[: ids.index(END)] if ended else ids, "ended": ended, "score": score})
    return found


def same(a, b):
    return a is not None and b is not None and [(x["ids"], x["ended"]) for x in a] == [(x["ids"], x["ended"]) for x in b]


if __name__ == "__main__":
    root = pathlib.Path(__file__).parents[2] / "crates/regard-core/tests/goldens/generate"
    shutil.rmtree(root, ignore_errors=True)
    cases, left_out, lengths = [], 0, []
    for name, shape in MODELS.items():
        folder = root / name
        folder.mkdir(parents=True)
        model, exact = make(folder, *shape)
        rng = random.Random(name)
        sources = [[rng.randrange(2, PAD) for _ in range(rng.randrange(1, 9))] + [END] for _ in range(SENTENCES)]
        frequent = frequent_pairs(model, sources)
        for settings in SETTINGS:
            settings = dict(settings)
            if settings.get("bad_words_ids") == "frequent":
                settings["bad_words_ids"] = frequent
            results = []
            for number, source in enumerate(sources):
                found = generate(model, source, settings)
                if not same(found, generate(exact, source, settings)):
                    left_out += 1
                    continue
                for hypothesis in found:
                    lengths.append(len(hypothesis["ids"]))
                    if hypothesis["score"] is not None:
                        hypothesis["score"] = float(f"{hypothesis['score']:.7g}")
                results.append([number, [[h["ids"], h["ended"], h["score"]] for h in found]])
            cases.append({"model": name, "settings": settings, "results": results})
        cases[-len(SETTINGS)]["sources"] = sources
    lines = [json.dumps(case, separators=(",", ":")) for case in cases]
    (root / "cases.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    counts = {n: lengths.count(n) for n in sorted(set(lengths))}
    print(len(cases), "cases,", left_out, "sentences left out, hypotheses by length:", counts)
    print(sum(f.stat().st_size for f in root.rglob("*") if f.is_file()), "bytes")
