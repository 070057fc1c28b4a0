#!/usr/bin/env python3
"""Writes crates/train/tests/goldens/transformer.json: small Transformers built of PyTorch's own
layers from fixed weights.

For post-norm and pre-norm, embeddings tied three ways and not at all, and some other settings: the
weights under Regard's names, a ragged batch, the logits, the loss with label smoothing, the
gradient of every parameter, and the losses of ten steps of Adam with clipping.
crates/train/tests/transformer.rs reproduces them.

    pip install torch numpy
    python tools/goldens/transformer.py
"""
import json, math, pathlib
import torch, torch.nn as nn, torch.nn.functional as F

WORDS, D, HEADS, FF, ENCODER, DECODER = 13, 8, 2, 12, 2, 1  # the last word is padding, and the decoder's start
PAD = WORDS - 1
SMOOTHING, RATE, CLIP = 0.1, 0.01, 1.0
SOURCE = [[3, 1, 4, 1, 5, 0], [9, 2, 0], [6, 5, 3, 5, 8, 9, 7, 0]]
TARGET = [[2, 7, 1, 0], [8, 2, 8, 1, 8, 0], [4, 0]]

CASES = {  # name: (pre-norm, tied, activation, positions)
    "post-tied": (False, True, "relu", "sinusoidal"),
    "post-untied": (False, False, "relu", "sinusoidal"),
    "pre-tied": (True, True, "relu", "sinusoidal"),
    "pre-untied": (True, False, "gelu", "learned"),
}


class Model(nn.Module):
    def __init__(self, pre, tied, activation, positions):
        super().__init__()
        common = dict(dropout=0.0, activation=activation, batch_first=True, norm_first=pre)
        final = lambda: nn.LayerNorm(D) if pre else None
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, HEADS, FF, **common), ENCODER, final(), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(D, HEADS, FF, **common), DECODER, final())
        self.source = nn.Embedding(WORDS, D, padding_idx=PAD)
        self.target = self.source if tied else nn.Embedding(WORDS, D, padding_idx=PAD)
        self.output = self.source if tied else nn.Embedding(WORDS, D, padding_idx=PAD)
        self.learned = positions == "learned"
        if self.learned:
            self.source_positions = nn.Parameter(torch.randn(16, D) * 0.3)
            self.target_positions = nn.Parameter(torch.randn(16, D) * 0.3)
        else:
            angle = torch.arange(16)[:, None] / 10000 ** (torch.arange(0, D, 2)[None] / D)
            self.register_buffer("source_positions", torch.cat([angle.sin(), angle.cos()], 1))
            self.register_buffer("target_positions", torch.cat([angle.sin(), angle.cos()], 1))

    def forward(self, source, target):
        x = self.source(source) * math.sqrt(D) + self.source_positions[: source.size(1)]
        memory = self.encoder(x, src_key_padding_mask=source == PAD)
        y = self.target(target) * math.sqrt(D) + self.target_positions[: target.size(1)]
        causal = torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1)
        y = self.decoder(y, memory, tgt_mask=causal, memory_key_padding_mask=source == PAD)
        return F.linear(y, self.output.weight)[..., :PAD]


def named(model, tied, pick):
    """Regard's parameter names and the parts of PyTorch's tensors that they mean; `pick` takes a
    tensor or its gradient."""
    out = {}
    if tied:
        out["embeddings"] = pick(model.source.weight)
    else:
        out["encoder.embeddings"] = pick(model.source.weight)
        out["decoder.embeddings"] = pick(model.target.weight)
        out["output"] = pick(model.output.weight)
    if model.learned:
        out["encoder.positions"] = pick(model.source_positions)
        out["decoder.positions"] = pick(model.target_positions)

    def linear(name, weight, bias):
        out[name + ".weight"], out[name + ".bias"] = weight, bias

    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for i, layer in enumerate(stack.layers):
            at = f"{side}.layers.{i}"
            a = layer.self_attn
            linear(at + ".self_attn.qkv", pick(a.in_proj_weight), pick(a.in_proj_bias))
            linear(at + ".self_attn.out", pick(a.out_proj.weight), pick(a.out_proj.bias))
            linear(at + ".self_attn_norm", pick(layer.norm1.weight), pick(layer.norm1.bias))
            if side == "decoder":
                a = layer.multihead_attn
                linear(at + ".cross_attn.q", pick(a.in_proj_weight)[:D], pick(a.in_proj_bias)[:D])
                linear(at + ".cross_attn.kv", pick(a.in_proj_weight)[D:], pick(a.in_proj_bias)[D:])
                linear(at + ".cross_attn.out", pick(a.out_proj.weight), pick(a.out_proj.bias))
                linear(at + ".cross_attn_norm", pick(layer.norm2.weight), pick(layer.norm2.bias))
            linear(at + ".ffn.up", pick(layer.linear1.weight), pick(layer.linear1.bias))
            linear(at + ".ffn.down", pick(layer.linear2.weight), pick(layer.linear2.bias))
            last = layer.norm2 if side == "encoder" else layer.norm3
            linear(at + ".ffn_norm", pick(last.weight), pick(last.bias))
        if stack.norm is not None:
            linear(side + ".norm", pick(stack.norm.weight), pick(stack.norm.bias))
    return {k: numbers(v) for k, v in out.items()}


def numbers(x):
    return [float(f"{v:.9g}") for v in x.detach().reshape(-1).tolist()]


def pad(rows):
    n = max(map(len, rows))
    return torch.tensor([r + [PAD] * (n - len(r)) for r in rows])


def main():
    source, output = pad(SOURCE), pad(TARGET)
    target = torch.cat([torch.full((len(TARGET), 1), PAD), output[:, :-1]], 1)
    real = output != PAD
    golden = {
        "made_by": "tools/goldens/transformer.py", "torch": torch.__version__.split("+")[0],
        "words": WORDS, "d_model": D, "heads": HEADS, "d_ff": FF, "encoder_layers": ENCODER, "decoder_layers": DECODER,
        "positions": 16, "label_smoothing": SMOOTHING, "rate": RATE, "clip": CLIP,
        "source": SOURCE, "target": TARGET, "cases": [],
    }
    for seed, (name, (pre, tied, activation, positions)) in enumerate(CASES.items()):
        torch.manual_seed(seed)
        model = Model(pre, tied, activation, positions)
        for p in model.parameters():  # biases and norms that differ from 0 and 1 show more
            with torch.no_grad():
                p.add_(torch.randn_like(p) * 0.1)
        with torch.no_grad():
            for e in {model.source, model.target, model.output}:
                e.weight[PAD] = 0
        case = {"name": name, "pre_norm": pre, "tied": tied, "activation": activation, "positions": positions,
                "weights": named(model, tied, lambda p: p)}
        adam = torch.optim.Adam(model.parameters(), RATE, betas=(0.9, 0.98), eps=1e-9)
        losses = []
        for step in range(10):
            logits = model(source, target)[real]
            loss = F.cross_entropy(logits, output[real], label_smoothing=SMOOTHING)
            adam.zero_grad()
            loss.backward()
            losses.append(float(f"{loss.item():.9g}"))
            norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
            if step == 0:
                case["logits"] = numbers(logits)
                case["gradients"] = named(model, tied, lambda p: p.grad)
                case["gradient_norm"] = float(f"{norm.item():.9g}")
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            adam.step()
        case["losses"] = losses
        golden["cases"].append(case)
    path = pathlib.Path(__file__).resolve().parents[2] / "crates" / "train" / "tests" / "goldens" / "transformer.json"
    path.write_text(json.dumps(golden) + "\n")
    print(f"{path.name}: {path.stat().st_size} bytes")


main()
