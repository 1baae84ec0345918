"""The shipped pair, and small models of random weights."""

from __future__ import annotations

import json
import pathlib
import struct
from typing import Any

import numpy as np
import torch
import transformers

TOP = pathlib.Path(__file__).resolve().parents[2]
SHIPPED = TOP / "sim" / "models"
VOCAB = 61


def shipped(name: str) -> Any:
    """The "target" or the "draft", in F32."""
    return transformers.AutoModelForCausalLM.from_pretrained(SHIPPED / name, dtype=torch.float32)


def shipped_tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(SHIPPED / "target")


def shipped_prompts(every: int = 1) -> list[dict[str, str]]:
    lines = (SHIPPED / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines][::every]


def random_model(shape: str, seed: int, *, vocab: int = VOCAB, eos: int | None = None) -> Any:
    """A model of one of three families; its weights are large enough for rows that differ."""
    torch.manual_seed(seed)
    common: dict[str, Any] = {"vocab_size": vocab, "bos_token_id": None, "eos_token_id": eos, "initializer_range": 0.3}
    if shape == "gpt2":
        config: Any = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=128, **common)
    elif shape == "llama":
        config = transformers.LlamaConfig(
            hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=128, **common)  # fmt: skip
    else:
        config = transformers.Qwen2Config(
            hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1,
            max_position_embeddings=128, use_sliding_window=False, **common)  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def random_prompts(count: int, seed: int = 0, vocab: int = VOCAB) -> list[list[int]]:
    """Prompts of 1 to 9 tokens."""
    rng = np.random.default_rng(seed)
    return [rng.integers(3, vocab, rng.integers(1, 10)).tolist() for _ in range(count)]


_TYPES = {"F32": np.float32, "F16": np.float16, "I32": np.int32, "I64": np.int64}


def columns_of(folder: pathlib.Path) -> dict[str, np.ndarray[Any, Any]]:
    """The tensors of all shards, read by nothing but their description."""
    parts: dict[str, list[np.ndarray[Any, Any]]] = {}
    for path in sorted(folder.glob("*.safetensors")) if folder.is_dir() else [folder]:
        content = path.read_bytes()
        (size,) = struct.unpack("<Q", content[:8])
        for name, entry in json.loads(content[8 : 8 + size]).items():
            if name != "__metadata__":
                begin, end = (8 + size + offset for offset in entry["data_offsets"])
                column = np.frombuffer(content[begin:end], _TYPES[entry["dtype"]]).reshape(entry["shape"])
                parts.setdefault(name, []).append(column)
    return {name: np.concatenate(columns) for name, columns in parts.items()}


def naive_logprobs(model: Any, prompt: list[int], text: list[int]) -> np.ndarray[Any, Any]:
    """The log-probabilities before each token of the text, each from a pass of its own over all before it."""
    rows = []
    with torch.no_grad():
        for place in range(len(text)):
            logits = model(torch.tensor([prompt + text[:place]]), use_cache=False).logits[0, -1]
            rows.append(logits.double().log_softmax(-1).numpy())
    return np.array(rows)
