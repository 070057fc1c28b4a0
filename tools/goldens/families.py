#!/usr/bin/env python3
"""Writes crates/regard-core/tests/goldens/families/: small models of random weights of the families
other than Marian's, as `transformers` saves them, with the tokenizers of their classes, and what
they compute.

Each case is a folder of save_pretrained and golden.json: lines of text with their ids in some
languages, the encoder's output, the logits, and what generate finds with beams of 1 and 4.
Sentences of which single and double precision disagree, or in which padding comes out, are left
out. tests/families.rs reproduces all of it.

    pip install torch transformers sentencepiece
    python tools/goldens/families.py [CASE…]
"""
import json, os, pathlib, random, shutil, sys, tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sentencepiece
import torch
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, normalizers
from tokenizers.models import Unigram
from transformers import (M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer, MBart50Tokenizer, MBartConfig,
                          MBartForConditionalGeneration, NllbTokenizer, T5Config, T5ForConditionalGeneration, T5Tokenizer, logging)

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(1)
ROOT = pathlib.Path(__file__).resolve().parents[2] / "crates" / "regard-core" / "tests" / "goldens" / "families"
RNG = random.Random(21)

SYLLABLES = [a + b for a in "bkdntslrfgmp" for b in ["a", "o", "er", "in", "ä", "ou"]] + ["ß", "山", "川", "да", "не", "ب"]
LINES = [
    "kano tinser", "Two  spaces, and a tab\there.", " leads and trails ", "bader 山川 не да!", "ﬁnin e\u0301 ＡＢＣ ½ …",
    "zero\u200bwidth \u00a0 space\u3000wide", "emoji 👩\u200d🚀 👍🏽", "koko▁nin ▁", "a", "?", "0123 4567", "\x01 control \x7f", "ß" * 9 + "☃☃ ☃",
]


def spm(folder, kind, size, name, **options):
    """A SentencePiece model of invented words."""
    rng = random.Random(kind + str(size))
    word = lambda: "".join(rng.choices(SYLLABLES, [1 / (i + 1) for i in range(len(SYLLABLES))], k=rng.randrange(1, 5)))
    lines = [" ".join(word() for _ in range(rng.randrange(2, 10))) + rng.choice(".!?,") for _ in range(800)]
    text = folder / "text"
    text.write_text("\n".join(lines), encoding="utf-8")
    options = {"normalization_rule_name": "identity", "character_coverage": 1.0, "minloglevel": 2, "num_threads": 1, **options}
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(folder / "made"), vocab_size=size, model_type=kind, **options)
    os.rename(folder / "made.model", folder / name)
    for left in ["text", "made.vocab"]:
        (folder / left).unlink()
    return folder / name


def m2m_tokenizer(folder, **options):
    file = spm(folder, "bpe", 150, "sentencepiece.bpe.model", **options)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(file))
    vocab = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    # Another order than the file's, and one piece that has no id.
    for i in reversed(range(4, pieces.get_piece_size())):
        vocab[pieces.id_to_piece(i)] = len(vocab)
    (folder / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False))
    return M2M100Tokenizer(str(folder / "vocab.json"), str(file), src_lang="en", tgt_lang="de")


def scored(file):
    """The pieces of a SentencePiece model with their scores."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(file))
    return [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(pieces.get_piece_size())]


def nllb_tokenizer(folder, **options):
    pieces = scored(spm(folder, "bpe", 140, "sentencepiece.bpe.model"))
    vocab = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, **{piece: i + 4 for i, (piece, _) in enumerate(pieces[3:])}}
    # The best piece is the one that is merged first.
    merges = [(piece[:i], piece[i:]) for piece, _ in sorted(pieces[3:], key=lambda x: -x[1]) for i in range(1, len(piece))]
    merges = [(left, right) for left, right in merges if left in vocab and right in vocab]
    made = NllbTokenizer(vocab=vocab, merges=merges, src_lang="eng_Latn", tgt_lang="deu_Latn", **options)
    # In the place of the published models' compiled rules, which are a quarter of a megabyte.
    made._tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    return made


def mbart_tokenizer(folder):
    return MBart50Tokenizer(vocab=scored(spm(folder, "unigram", 160, "sentencepiece.bpe.model")), src_lang="en_XX", tgt_lang="de_DE")


LANGUAGES = ["de", "fr", "pt_BR", "zh", "sr_Latn"]
# What the rules of published models do to these lines; all of their rules are a quarter of a
# megabyte.
RULES = {"\t": " ", "\u00a0": " ", "\u200b": " ", "\u3000": " ", "\x01": "", "\x7f": "", "ﬁ": "fi", "e\u0301": "é", "½": "1⁄2", "…": "...",
         **{chr(ord("Ａ") + i): chr(ord("A") + i) for i in range(3)}}


def with_rules(folder, **options):
    """A SentencePiece model with RULES and the tokens of languages, and its compiled rules."""
    points = lambda text: " ".join(f"{ord(c):X}" for c in text)
    rules = folder / "rules.tsv"
    rules.write_text("".join(f"{points(a)}\t{points(b)}\n" for a, b in sorted(RULES.items())), encoding="utf-8")
    options = {"normalization_rule_name": "", "normalization_rule_tsv": str(rules), "user_defined_symbols": [f"<2{code}>" for code in LANGUAGES], **options}
    if options["normalization_rule_name"]:
        del options["normalization_rule_tsv"]
    file = spm(folder, "unigram", 150, "spiece.model", **options)
    rules.unlink()
    return file, sentencepiece_model_pb2.ModelProto.FromString(file.read_bytes()).normalizer_spec.precompiled_charsmap


def t5_tokenizer(folder, **options):
    file, charsmap = with_rules(folder, unk_id=2, bos_id=-1, pad_id=0, eos_id=1, **options)
    return T5Tokenizer(vocab=scored(file), extra_ids=0, _spm_precompiled_charsmap=charsmap)


def madlad_tokenizer(folder, **options):
    """With the ids of MADLAD-400, whose padding is <s>. Its folders have the SentencePiece model
    too."""
    file, charsmap = with_rules(folder, unk_id=0, bos_id=1, eos_id=2, pad_id=-1, **options)
    made = T5Tokenizer(vocab=scored(file), extra_ids=0, pad_token="<s>", _spm_precompiled_charsmap=charsmap)
    made._tokenizer.model = Unigram(scored(file), 0, False)
    made.spm = file.read_bytes()
    return made


def m2m(words, activation="relu", d=16, heads=2, layers=(2, 1), ffn=(24, 24), **more):
    return M2M100ForConditionalGeneration, M2M100Config(
        vocab_size=words, d_model=d, encoder_layers=layers[0], decoder_layers=layers[1], encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=ffn[0], decoder_ffn_dim=ffn[1], activation_function=activation, max_position_embeddings=48, **more)


def mbart(words, d=16, heads=2, layers=(1, 2), scale=True, activation="gelu"):
    return MBartForConditionalGeneration, MBartConfig(
        vocab_size=words, d_model=d, encoder_layers=layers[0], decoder_layers=layers[1], encoder_attention_heads=heads, decoder_attention_heads=heads,
        encoder_ffn_dim=24, decoder_ffn_dim=20, activation_function=activation, max_position_embeddings=40, scale_embedding=scale,
        decoder_start_token_id=2, forced_eos_token_id=2)


class Untied(T5ForConditionalGeneration):
    """With an output matrix of its own, as files of MADLAD-400 have it; the class itself ties it
    whatever the configuration says."""

    def __init__(self, config):
        config.tie_word_embeddings = False
        super().__init__(config)
        self.encoder.set_input_embeddings(self.shared)
        self.decoder.set_input_embeddings(self.shared)


def t5(words, d=16, d_kv=6, heads=3, layers=(2, 1), ff="gated-gelu", tied=False, buckets=8, distance=12, ids=(0, 1, 0)):
    start, end, pad = ids
    return T5ForConditionalGeneration if tied else Untied, T5Config(
        vocab_size=words, d_model=d, d_kv=d_kv, d_ff=20, num_layers=layers[0], num_decoder_layers=layers[1], num_heads=heads,
        relative_attention_num_buckets=buckets, relative_attention_max_distance=distance, feed_forward_proj=ff, tie_word_embeddings=tied,
        pad_token_id=pad, eos_token_id=end, decoder_start_token_id=start)


# name: (tokenizer, model, words beyond the tokenizer's, pairs of languages)
CASES = {
    "m2m100": (m2m_tokenizer, m2m, 8, [("en", "de"), ("zh", "ast")]),
    "m2m100-wide": (m2m_tokenizer, lambda words: m2m(words, "gelu", 24, 4, (1, 2), (20, 28), scale_embedding=False), 0, [("fr", "en")]),
    "nllb": (nllb_tokenizer, m2m, 2, [("eng_Latn", "deu_Latn"), ("zho_Hant", "ace_Arab")]),
    "nllb-legacy": (lambda folder: nllb_tokenizer(folder, legacy_behaviour=True), lambda words: m2m(words, layers=(1, 1)), 0, [("eng_Latn", "fra_Latn")]),
    "mbart50": (mbart_tokenizer, mbart, 0, [("en_XX", "de_DE"), ("ja_XX", "sl_SI")]),
    "mbart50-plain": (mbart_tokenizer, lambda words: mbart(words, 24, 4, (2, 1), False, "relu"), 0, [("fr_XX", "en_XX")]),
    "madlad": (madlad_tokenizer, lambda words: t5(words, ids=(0, 2, 1)), 0, [(None, "de"), (None, "pt_BR")]),
    "t5-tied": (t5_tokenizer, lambda words: t5(words, 16, 8, 2, (2, 2), "relu", True, 32, 128), 0, [(None, "fr")]),
    "t5-silu": (t5_tokenizer, lambda words: t5(words, 12, 5, 2, (1, 1), "gated-silu", True, 6, 20), 0, [(None, "zh")]),
}


def encode(tokenizer, text, source, target):
    if source is None:
        return tokenizer(f"<2{target}> {text}").input_ids
    tokenizer.src_lang = source
    return tokenizer(text).input_ids


def forced(tokenizer, target):
    if isinstance(tokenizer, T5Tokenizer):
        return None
    return tokenizer.get_lang_id(target) if isinstance(tokenizer, M2M100Tokenizer) else tokenizer.convert_tokens_to_ids(target)


def randomise(model, end, seed):
    torch.manual_seed(seed)
    pad = model.config.pad_token_id
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            norm = "norm" in name and name.endswith("weight")
            parameter.normal_(1.0 if norm else 0.0, 0.4)
        for name, parameter in model.named_parameters():
            if parameter.shape[0] == model.config.vocab_size:
                if model.config.model_type != "t5":  # whose decoder starts with it
                    parameter[pad] = 0
                parameter[end] *= 2.5 if model.config.model_type != "t5" else 1.2
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_(0, 0.5)


def rounded(x):
    return [float(f"{v:.6g}") for v in x.flatten().tolist()]


def generate(model, source, first, beams, tokenizer):
    with torch.no_grad():
        more = {} if first is None else {"forced_bos_token_id": first}
        out = model.generate(torch.tensor([source]), num_beams=beams, max_length=14, do_sample=False, length_penalty=1.0, **more)[0].tolist()[1:]
    end, pad = model.config.eos_token_id, model.config.pad_token_id
    ended = end in out
    ids = out[: out.index(end)] if ended else out
    while not ended and ids and ids[-1] == pad:
        ids.pop()
    return None if pad in ids else {"ids": ids, "ended": ended, "text": tokenizer.decode([i for i in ids if i < tokenizer.known and i not in tokenizer.of_languages], skip_special_tokens=True)}


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def make(name, make_tokenizer, make_model, beyond, pairs):
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as made:
        tokenizer = make_tokenizer(pathlib.Path(made))
        tokenizer.save_pretrained(folder)
        if hasattr(tokenizer, "spm"):
            (folder / "spiece.model").write_bytes(tokenizer.spm)
    if isinstance(tokenizer, T5Tokenizer):
        languages = {code: tokenizer.convert_tokens_to_ids(f"<2{code}>") for code in LANGUAGES}
    elif isinstance(tokenizer, M2M100Tokenizer):
        languages = tokenizer.lang_code_to_id
    else:
        languages = {code: tokenizer.convert_tokens_to_ids(code) for code in tokenizer.extra_special_tokens}
    # M2M100's class does not leave the tokens of languages out of a text.
    tokenizer.known, tokenizer.of_languages = max([len(tokenizer) - 1, *languages.values()]) + 1, set(languages.values())
    words = tokenizer.known + beyond
    texts = []
    kind, config = make_model(words)
    model = kind(config).eval()
    rng = random.Random(name)
    for text in LINES:
        source, target = rng.choice(pairs)
        texts.append({"source_lang": source, "target_lang": target, "text": text, "ids": encode(tokenizer, text, source, target)})
    # Weights with which sentences end early and late.
    for seed in range(20):
        randomise(model, config.eos_token_id, seed)
        found = [generate(model, text["ids"], forced(tokenizer, text["target_lang"]), 1, tokenizer) for text in texts[:6]]
        lengths = {len(one["ids"]) for one in found if one and one["ended"]}
        if None not in found and len(lengths) >= 3:
            break
    model.save_pretrained(folder)
    kind = T5ForConditionalGeneration if kind is Untied else kind
    model, exact = kind.from_pretrained(folder).eval(), kind.from_pretrained(folder, dtype=torch.float64).eval()
    sentences, left_out = [], 0
    for text in texts[:6]:
        ids, first = text["ids"], forced(tokenizer, text["target_lang"])
        target = [config.decoder_start_token_id] + ([] if first is None else [first]) + [rng.randrange(4, words) for _ in range(3)]
        with torch.no_grad():
            out = model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([target]))
        # A few columns of the logits are enough to find a fault, and all of them would be most of
        # the file.
        columns = sorted(rng.sample(range(words), 24))
        found = []
        for beams in [1, 4]:
            one, other = generate(model, ids, first, beams, tokenizer), generate(exact, ids, first, beams, tokenizer)
            if one is None or one != other:
                left_out += 1
                continue
            found.append({"beams": beams, **one})
        sentences.append({"source_lang": text["source_lang"], "target_lang": text["target_lang"], "source": ids, "target": target, "generated": found,
                          "encoded": rounded(out.encoder_last_hidden_state), "columns": columns, "logits": rounded(out.logits[0][:, columns])})
    write(folder / "golden.json", {"languages": languages, "texts": texts, "sentences": sentences})
    for file in folder.glob("*.json"):  # without their spaces
        value = json.loads(file.read_text(encoding="utf-8"))
        if file.name in ("config.json", "generation_config.json"):
            value.pop("transformers_version", None)
        write(file, value)
    lengths = [len(g["ids"]) for s in sentences for g in s["generated"]]
    print(name, words, "words,", left_out, "searches left out, lengths", lengths, sum(f.stat().st_size for f in folder.iterdir()), "bytes", sorted(f.name for f in folder.iterdir()))


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        make(name, *CASES[name])
