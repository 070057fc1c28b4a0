#!/usr/bin/env python3
"""Writes crates/regard-core/tests/goldens/torch/: files of torch.save in both of its forms, the zip
archive and the older row of pickles.

views-*.bin: views of 0, 1, … 11 as [3, 4] in every way that tensors share storages, and other
types. model-*.bin: the weights of crates/regard-core/tests/goldens/marian/swish-shared as older
transformers saved them: tied matrices under each of their names, the positions, and an lm_head that
is wrong.

    pip install torch transformers
    python tools/goldens/torch_files.py
"""
import collections, pathlib
import torch
from safetensors.torch import load_file

FORMS = {"archive": True, "older": False}


def views():
    a = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    table = collections.OrderedDict(
        whole=a, transposed=a.t(), row=a[1], column=a[:, 2], corner=a[1:, 2:], half=a.half(), rough=a.bfloat16(),
        parameter=torch.nn.Parameter(a.clone()), ids=torch.tensor([1, 2]), nothing=torch.zeros(0, 3), number=torch.tensor(3.5), wide=a.double())
    table._metadata = collections.OrderedDict([("", {"version": 1})])
    return table


def model(folder):
    table = collections.OrderedDict(load_file(folder / "model.safetensors"))
    shared = table["model.shared.weight"]
    table["model.encoder.embed_tokens.weight"] = table["model.decoder.embed_tokens.weight"] = shared
    table["model.encoder.embed_positions.weight"] = torch.zeros(64, shared.shape[1])
    table["lm_head.weight"] = torch.full_like(shared, 7.0)
    return table


if __name__ == "__main__":
    goldens = pathlib.Path(__file__).parents[2] / "crates/regard-core/tests/goldens"
    folder = goldens / "torch"
    folder.mkdir(exist_ok=True)
    for name, is_archive in FORMS.items():
        torch.save(views(), folder / f"views-{name}.bin", _use_new_zipfile_serialization=is_archive)
        torch.save(model(goldens / "marian/swish-shared"), folder / f"model-{name}.bin", _use_new_zipfile_serialization=is_archive)
    for file in sorted(folder.iterdir()):
        print(file.name, file.stat().st_size, "bytes")
