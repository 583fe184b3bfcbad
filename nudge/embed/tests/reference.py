"""Makes reference.json: the vectors of the model in FOLDER, computed by NumPy after the paper, without any of our code.

    python -m pip install numpy tokenizers
    python nudge/embed/tests/reference.py FOLDER > nudge/embed/tests/reference.json
"""

import json
import math
import pathlib
import struct
import sys

import numpy as np
from tokenizers import Tokenizer

TEXTS = [
    "",
    "cargo",
    "cannot borrow as mutable more than once in the cache",
    "E0502 in the session cache after adding get_or_insert",
    "Der Server antwortet nicht mehr, seit die Prüfung läuft.",
    "naïve café, 日本語 and 🦀",
    "SQLITE_BUSY: two processes open the same file at once. " * 40,
    "x" * 300,
]
TOKENS = 256
SHOWN = 12

folder = pathlib.Path(sys.argv[1])
data = (folder / "model.safetensors").read_bytes()
length = struct.unpack("<Q", data[:8])[0]
WEIGHTS = {
    name: np.frombuffer(data[8 + length :][slice(*at["data_offsets"])], np.float32).reshape(at["shape"]).astype(np.float64)
    for name, at in json.loads(data[8 : 8 + length]).items()
    if name != "__metadata__" and at["dtype"] == "F32"
}
tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
tokenizer.no_padding()
tokenizer.enable_truncation(TOKENS)
erf = np.vectorize(math.erf)


def norm(x, name):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-12) * WEIGHTS[f"{name}.weight"] + WEIGHTS[f"{name}.bias"]


def linear(x, name):
    return x @ WEIGHTS[f"{name}.weight"].T + WEIGHTS[f"{name}.bias"]


def vector(text):
    ids = tokenizer.encode(text).ids
    tables = [WEIGHTS[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")]
    x = norm(tables[0][ids] + tables[1][: len(ids)] + tables[2][0], "embeddings.LayerNorm")
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        parts = [linear(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
        query, key, value = [part.reshape(len(ids), 12, 32).transpose(1, 0, 2) for part in parts]
        weight = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(32))
        mixed = (weight / weight.sum(-1, keepdims=True)) @ value
        mixed = linear(mixed.transpose(1, 0, 2).reshape(len(ids), 384), f"{name}.attention.output.dense")
        x = norm(mixed + x, f"{name}.attention.output.LayerNorm")
        wide = linear(x, f"{name}.intermediate.dense")
        wide = wide * 0.5 * (1 + erf(wide / math.sqrt(2)))
        x = norm(linear(wide, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


vectors = [vector(text) for text in TEXTS]
tokenizer.no_truncation()
rows = [
    {
        "text": text,
        "tokens": len(tokenizer.encode(text, add_special_tokens=False).ids),
        "begins": [round(float(number), 7) for number in made[:SHOWN]],
        "cosines": [round(float(made @ other), 7) for other in vectors],
    }
    for text, made in zip(TEXTS, vectors)
]
print("[\n" + ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows) + "\n]")
