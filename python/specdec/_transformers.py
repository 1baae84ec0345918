"""Two models of transformers: what one writes, and the numbers of both before every token."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from specdec._errors import QuestionError

#: Numbers of rows that are looked at together.
_NUMBERS = 1 << 24

#: Settings of a GenerationConfig beside sampling that change no distribution.
_HARMLESS = {
    "assistant_confidence_threshold", "bos_token_id", "cache_config", "cache_implementation", "compile_config",
    "continuous_batching_config", "disable_compile", "do_sample", "eos_token_id", "is_assistant", "max_length", "max_new_tokens",
    "max_time", "num_assistant_tokens", "num_assistant_tokens_schedule", "output_attentions", "output_hidden_states",
    "output_logits", "output_scores", "pad_token_id", "prefill_chunk_size", "return_dict_in_generate", "temperature",
    "token_healing", "top_k", "top_p", "min_p", "transformers_version", "use_cache", "_from_model_config",
}  # fmt: skip


class Sampling(NamedTuple):
    """The sampling of both models: temperature, then the cuts, which 0, 1 and 0 switch off."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"specdec.record needs {name}, which cannot be imported: {error}") from None


def require_model(name: str, model: Any) -> None:
    transformers = _module("transformers")
    if not isinstance(model, transformers.PreTrainedModel):
        raise TypeError(f"{name} is {type(model).__name__}, but must be a transformers.PreTrainedModel")
    if any(parameter.is_meta for parameter in model.parameters()):
        raise QuestionError(f"{name} is on the meta device, which holds no weights; load it onto a device first", name)
    if model.config.is_encoder_decoder or not model.can_generate():
        raise QuestionError(f"{name} is {type(model).__name__}, but must be a decoder that generates", name)


def sampling_of(
    target: Any, temperature: float | None, top_k: int | None, top_p: float | None, min_p: float | None, config: Any
) -> Sampling:
    """That of the four, or of a GenerationConfig."""
    given: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    given = {name: value for name, value in given.items() if value is not None}
    if config is not None:
        if given:
            name = next(iter(given))
            raise QuestionError(f"{name} is given, but must not be beside generation_config", name)
        unknown = sorted(config.to_diff_dict().keys() - _HARMLESS)
        if unknown:
            raise QuestionError(f"generation_config has {unknown[0]} {getattr(config, unknown[0], None)}, but must have no "
                                "settings that change distributions beside temperature, top_k, top_p and min_p",
                                "generation_config")
        if not config.do_sample:
            return Sampling(temperature=0.0)
        given = {name: getattr(config, name) for name in Sampling._fields}
        given = {name: value for name, value in given.items() if value is not None}
    found = Sampling(**given)
    if not 0 <= found.temperature < float("inf"):
        raise QuestionError(f"temperature is {found.temperature}, but must be in [0, inf)", "temperature")
    if not hasattr(found.top_k, "__index__") or found.top_k < 0:
        raise QuestionError(f"top_k is {found.top_k}, but must be an integer from 0 on", "top_k")
    if not 0 < found.top_p <= 1:
        raise QuestionError(f"top_p is {found.top_p}, but must be in (0, 1]", "top_p")
    if not 0 <= found.min_p <= 1:
        raise QuestionError(f"min_p is {found.min_p}, but must be in [0, 1]", "min_p")
    if found.temperature == 0:
        return Sampling(temperature=0.0)
    return Sampling(float(found.temperature), int(found.top_k), float(found.top_p), float(found.min_p))


def vocabulary_of(target: Any, draft: Any, wanted: int | None) -> int:
    """The number of columns of the rows that are tokens."""
    sizes = [int(model.config.get_text_config().vocab_size) for model in (target, draft)]
    if wanted is None:
        if sizes[0] != sizes[1]:
            raise QuestionError(f"draft has {sizes[1]} tokens, but must have the target's vocabulary of {sizes[0]}; if one "
                                "is only padded, vocab_size says how many are tokens of both", "draft")
        return sizes[0]
    if not hasattr(wanted, "__index__") or not 1 <= wanted <= min(sizes):
        raise QuestionError(f"vocab_size is {wanted}, but must be an integer in [1, {min(sizes)}]", "vocab_size")
    return wanted


def fingerprint(model: Any) -> str:
    """Sixteen digits that tell models apart: by the names, shapes and types of their weights, and 64 numbers of each."""
    digest = hashlib.sha256(type(model).__name__.encode())
    for name, parameter in model.named_parameters():
        digest.update(f"{name} {tuple(parameter.shape)} {parameter.dtype}".encode())
        flat = parameter.detach().reshape(-1)
        digest.update(flat[:: max(1, flat.numel() // 64)][:64].double().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


class Writer:
    """The target writes a batch of texts by its own `generate`, and the draft reads each in one pass."""

    def __init__(
        self, target: Any, draft: Any, sampling: Sampling, *, tier: str, k: int, dtype: str, vocab: int, max_new_tokens: int
    ) -> None:
        self._torch = _module("torch")
        self._target = target
        self._draft = draft
        self._sampling = sampling
        self._tier = tier
        self._k = min(k, vocab)
        self._dtype = getattr(self._torch, dtype)
        self._vocab = vocab
        self._config = self._generation(max_new_tokens)
        self._ends = self._end_tokens()
        self._warpers = self._processors()

    def write(self, prompts: Sequence[Sequence[int]], seed: int) -> tuple[list[int], dict[str, Any]]:
        """Each text's number of tokens, and the columns of all of them, text by text, as docs/reference/formats.md names them."""
        torch = self._torch
        longest = max(map(len, prompts))
        given = torch.tensor([[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        with torch.inference_mode(), _evaluating(self._target), _evaluating(self._draft):
            tokens, target_rows = self._generate(given, mask, seed)
            draft_rows = self._read(torch.cat((given, tokens), 1), mask, tokens.shape[1])
            lengths = [self._length(row) for row in tokens.tolist()]
            return lengths, self._columns(tokens, lengths, target_rows, draft_rows)

    def _generation(self, max_new_tokens: int) -> Any:
        """Every setting that samples is said: transformers' own default cuts off all but 50 tokens."""
        how = self._sampling
        return _module("transformers").GenerationConfig(
            do_sample=how.temperature > 0,
            temperature=how.temperature or 1.0,
            top_k=how.top_k,
            top_p=how.top_p,
            min_p=how.min_p or None,
            max_new_tokens=max_new_tokens,
            eos_token_id=self._target.generation_config.eos_token_id,
            bos_token_id=self._target.generation_config.bos_token_id,
            pad_token_id=0,
            output_logits=True,
            return_dict_in_generate=True,
        )

    def _end_tokens(self) -> set[int]:
        ends = self._config.eos_token_id
        return set() if ends is None else {ends} if isinstance(ends, int) else set(ends)

    def _processors(self) -> list[Any]:
        """The processors that `generate` applies to a row before it samples, by the same code."""
        transformers = _module("transformers")
        how = self._sampling
        found = []
        if how.temperature not in (0, 1):
            found.append(transformers.TemperatureLogitsWarper(how.temperature))
        if how.top_k > 0:
            found.append(transformers.TopKLogitsWarper(how.top_k))
        if how.top_p < 1:
            found.append(transformers.TopPLogitsWarper(how.top_p))
        if how.min_p > 0:
            found.append(transformers.MinPLogitsWarper(how.min_p))
        return found

    def _generate(self, given: Any, mask: Any, seed: int) -> tuple[Any, Sequence[Any]]:
        """New tokens, (texts, tokens), and the target's logits before each: (texts, vocabulary), token by token."""
        device = self._target.device
        with _seeded(self._torch, device, seed), _configured(self._target, self._config):
            found = self._target.generate(
                given.to(device), attention_mask=mask.to(device), generation_config=self._config
            )
        return found.sequences[:, given.shape[1] :].cpu(), found.logits

    def _read(self, texts: Any, mask: Any, new: int) -> Any:
        """The draft's logits before each of the `new` last tokens: (texts, new, vocabulary)."""
        torch = self._torch
        device = self._draft.device
        known = set(inspect.signature(self._draft.forward).parameters)
        mask = torch.cat((mask, torch.ones(len(texts), new - 1, dtype=mask.dtype)), 1)
        options = {"attention_mask": mask.to(device)}
        if "position_ids" in known:
            options["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0).to(device)
        if "logits_to_keep" in known:
            options["logits_to_keep"] = new
        return self._draft(texts[:, :-1].to(device), use_cache=False, **options).logits[:, -new:]

    def _length(self, tokens: Sequence[int]) -> int:
        """Up to the first end token."""
        return next((place for place, token in enumerate(tokens, 1) if token in self._ends), len(tokens))

    def _columns(self, tokens: Any, lengths: Sequence[int], target_rows: Sequence[Any], draft_rows: Any) -> dict[str, Any]:
        torch = self._torch
        device = self._target.device
        new = tokens.shape[1]
        real = torch.arange(new)[None, :] < torch.tensor(lengths)[:, None]
        if int(tokens[real].max()) >= self._vocab:
            raise QuestionError(f"vocab_size is {self._vocab}, but the target wrote token {int(tokens[real].max())}",
                                "vocab_size")
        width = max(1, _NUMBERS // (len(lengths) * self._vocab))
        pieces: list[dict[str, Any]] = []
        for begin in range(0, new, width):
            end = min(new, begin + width)
            chosen = real[:, begin:end].T.to(device)
            p = torch.stack(list(target_rows[begin:end]))[chosen]
            q = draft_rows[:, begin:end].transpose(0, 1).to(device)[chosen]
            emitted = tokens[:, begin:end].T.to(device)[chosen]
            pieces.append(self._numbers(p, q, emitted))
        # They stand token by token, but must stand text by text.
        text, _ = torch.meshgrid(torch.arange(len(lengths)), torch.arange(new), indexing="ij")
        order = torch.argsort(text.T[real.T], stable=True)
        found = {name: torch.cat([piece[name] for piece in pieces])[order].numpy() for name in pieces[0]}
        found["token"] = tokens[real].to(torch.int32).numpy()
        return found

    def _numbers(self, p_logits: Any, q_logits: Any, tokens: Any) -> dict[str, Any]:
        """Columns of positions by their logits, (positions, vocabulary), and tokens."""
        logits = {"p": p_logits[:, : self._vocab].float(), "q": q_logits[:, : self._vocab].float()}
        for letter, name in (("p", "target"), ("q", "draft")):
            if not bool(logits[letter].amax(-1).isfinite().all()):
                raise QuestionError(f"{name} gave a row that is no distribution, with NaN or without a finite logit", name)
        if self._tier == "full":
            return {f"{m}.logprobs": rows.log_softmax(-1).to(self._dtype).cpu() for m, rows in logits.items()}
        rows = {letter: self._sampled(raw) for letter, raw in logits.items()}
        at = tokens[:, None]
        found = {"overlap": self._torch.minimum(rows["p"], rows["q"]).exp_().sum(-1)}
        for letter, raw in logits.items():
            found[f"{letter}.token_logprob"] = rows[letter].gather(1, at)[:, 0]
            found[f"{letter}.token_rank"] = self._ranks(raw, at)
        if self._tier == "topk":
            ids = {letter: row.topk(self._k).indices for letter, row in rows.items()}
            for letter, other in (("p", "q"), ("q", "p")):
                found[f"{letter}.topk_ids"] = ids[letter].int()
                found[f"{letter}.topk_logprobs"] = rows[letter].gather(1, ids[letter])
                found[f"{letter}.at_{other}_topk"] = rows[letter].gather(1, ids[other])
            for letter, row in rows.items():
                found[f"{letter}.tail_logprob"] = row.scatter(1, ids[letter], float("-inf")).logsumexp(-1)
        return {name: column.cpu() for name, column in found.items()}

    def _sampled(self, logits: Any) -> Any:
        """The log-probabilities that were sampled from."""
        if self._sampling.temperature == 0:
            best = self._torch.full_like(logits, float("-inf"))
            return best.scatter_(1, logits.argmax(-1, keepdim=True), 0.0)
        for warper in self._warpers:
            logits = warper(None, logits)
        return logits.log_softmax(-1)

    def _ranks(self, rows: Any, at: Any) -> Any:
        """Those of one token of each row, 1 for the largest, the lower index first among equals."""
        value = rows.gather(1, at)
        first = self._torch.arange(rows.shape[1], device=rows.device) < at
        return (1 + ((rows > value) | ((rows == value) & first)).sum(-1)).int()


@contextlib.contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Without dropout."""
    was = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was)


@contextlib.contextmanager
def _configured(model: Any, config: Any) -> Iterator[None]:
    """With these settings as the model's own: `generate` fills up what it is given from those."""
    was = model.generation_config
    model.generation_config = config
    try:
        yield
    finally:
        model.generation_config = was


@contextlib.contextmanager
def _seeded(torch: Any, device: Any, seed: int) -> Iterator[None]:
    """Random numbers of one's own; the process's go on as if nothing had been drawn."""
    is_cpu = device.type == "cpu"
    indices = [] if is_cpu else list(range(getattr(torch, device.type).device_count()))
    with torch.random.fork_rng(indices, device_type="cuda" if is_cpu else device.type):
        torch.manual_seed(seed)
        yield
