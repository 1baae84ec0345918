"""Recording from transformers: the target writes, and both models say how probable they find what it wrote."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from specdec import _core
from specdec._errors import QuestionError
from specdec._options import Path
from specdec._recording import Recording
from specdec._transformers import Sampling, Writer, fingerprint, require_model, sampling_of, vocabulary_of

if TYPE_CHECKING:
    from specdec.adapters._prompts import GivenPrompt

Tier = Literal["full", "topk", "scalar"]

#: How long a rank waits before it looks again for the shards of the others, seconds.
_LOOK_AGAIN = 0.2


class _Text(NamedTuple):
    """A prompt as the models read it."""

    tokens: list[int]
    #: One number in every recording.
    prompt: int
    task: int


def record(
    target: Any,
    draft: Any,
    prompts: Path | Iterable[GivenPrompt],
    *,
    output: Path,
    tokenizer: Any = None,
    draft_tokenizer: Any = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    generation_config: Any = None,
    sequences: int | None = None,
    max_new_tokens: int = 128,
    tier: Tier = "scalar",
    k: int = 64,
    dtype: Literal["float32", "float16"] = "float32",
    vocab_size: int | None = None,
    batch_size: int = 8,
    seed: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> Recording:
    """Lets one model of transformers write by its own ``generate``, and records what it and a second one said before every
    token. The same call again goes on where one was stopped; the processes of one ``torchrun`` share a recording.

    Each batch is a shard of the folder `output` and has its own random numbers, a function of `seed` and its number: what
    is written depends neither on interruptions nor on the number of processes, and a process that is killed loses no more
    than the batch that it is at. In memory lie 8 to 12 bytes of ``batch_size * max_new_tokens * vocabulary``.

    Parameters
    ----------
    target, draft : transformers.PreTrainedModel
        Decoders with one vocabulary, on whatever devices they are.
    prompts : path, or iterable of str, token ids or mappings
        A file as `specdec record --prompts` reads it, or texts, token ids, or mappings with "text" or "tokens" and
        perhaps "task". For a chat model use the token ids of its chat template.
    output : path
        A folder, which need not be there.
    tokenizer : transformers.PreTrainedTokenizer, optional
        For prompts that are texts.
    draft_tokenizer : transformers.PreTrainedTokenizer, optional
        Compared with `tokenizer`, where the models might not have one vocabulary.
    temperature : float, optional
        >= 0; 0 is greedy. 1 where it is not given.
    top_k, top_p, min_p : optional
        Cuts as transformers makes them, after the temperature; none where they are not given.
    generation_config : transformers.GenerationConfig, optional
        Instead of these four: ``target.generation_config`` samples as ``target.generate`` does on its own. A setting that
        is no temperature or cut, such as a repetition penalty, is refused, since acceptance would not be that of a draft.
    sequences : int, optional
        Sequence s continues prompt s modulo their number; as many as prompts where it is not given.
    max_new_tokens : int
        Of each sequence, >= 2; an end token of the target ends it before.
    tier : {"scalar", "topk", "full"}
        How much of each position to keep: docs/reference/formats.md. Whole rows are those of the models, which other ways of
        sampling can be computed from; the rest is what was sampled from.
    k : int
        Tokens that "topk" keeps of each model, >= 1.
    dtype : {"float32", "float16"}
        Of the log-probabilities of whole rows.
    vocab_size : int, optional
        Only the first columns of the rows are tokens: models of one tokenizer may be padded to different sizes. The others
        are cut off, and the rows made to sum to 1 again.
    batch_size : int
        Sequences at a time, >= 1.
    seed : int
        >= 0.
    progress : callable, optional
        Told how many sequences of how many are written.

    Returns
    -------
    Recording
        All of it, also on each of several processes, which wait for one another.

    Raises
    ------
    QuestionError
        A ValueError of one line: no prompts, a prompt longer than a context, models of different vocabularies or on the
        meta device, a recording of other models or settings at `output`, rows that are no distributions.
    FileError
        Where the place cannot be written.
    ImportError
        Without torch and transformers.

    Examples
    --------
    ::

        from transformers import AutoModelForCausalLM, AutoTokenizer

        target, draft = (AutoModelForCausalLM.from_pretrained(name, dtype="auto", device_map="cuda") for name in (big, small))
        tokenizer = AutoTokenizer.from_pretrained(big)
        recording = specdec.record(target, draft, ["Once upon a time"], tokenizer=tokenizer, output="run")
        print(specdec.analyze(recording, c=0.05))
    """
    for name, model in (("target", target), ("draft", draft)):
        require_model(name, model)
    sampling = sampling_of(target, temperature, top_k, top_p, min_p, generation_config)
    _require("max_new_tokens", max_new_tokens, 2)
    _require("batch_size", batch_size, 1)
    _require("k", k, 1)
    _require("seed", seed, 0)
    _require_word("tier", tier, ("full", "topk", "scalar"))
    _require_word("dtype", dtype, ("float32", "float16"))
    vocab = vocabulary_of(target, draft, vocab_size)
    _require_one_tokenizer(tokenizer, draft_tokenizer)
    texts, tasks = _texts(prompts, tokenizer, vocab)
    count = len(texts) if sequences is None else sequences
    _require("sequences", count, 1)
    for name, model in (("target", target), ("draft", draft)):
        _require_room(name, model, texts[:count], max_new_tokens)

    folder = pathlib.Path(output)
    said = {
        "record.target": fingerprint(target),
        "record.draft": fingerprint(draft),
        "record.prompts": _digest([text.tokens for text in texts]),
        "record.sampling": ", ".join(f"{name} {value:g}" for name, value in sampling._asdict().items()),
        "record.tier": {"topk": f"topk {k}", "full": f"full {dtype}"}.get(tier, tier),
        "record.vocab_size": str(vocab),
        "record.max_new_tokens": str(max_new_tokens),
        "record.sequences": str(count),
        "record.batch_size": str(batch_size),
        "record.seed": str(seed),
    }
    metadata = {**said, **_metadata(target, draft, sampling, tier, vocab, tasks)}
    batches = -(-count // batch_size)
    done = _shards(folder, said, batches)
    rank, ranks = _place()
    missing = [number for number in range(rank, batches, ranks) if number not in done]
    written = sum(min(batch_size, count - number * batch_size) for number in done)
    writer = Writer(target, draft, sampling, tier=tier, k=k, dtype=dtype, vocab=vocab, max_new_tokens=max_new_tokens)
    if missing:
        os.makedirs(folder, exist_ok=True)
    for number in missing:
        chosen = range(number * batch_size, min(count, (number + 1) * batch_size))
        batch = [texts[sequence % len(texts)] for sequence in chosen]
        lengths, columns = writer.write([text.tokens for text in batch], _seed(seed, number))
        columns.update(_labels(batch, chosen, lengths))
        _core.write_trace(os.fspath(_shard(folder, number)), metadata, columns)
        written += len(batch)
        if progress is not None:
            progress(written, count)
    while not all(_shard(folder, number).exists() for number in range(batches)):
        time.sleep(_LOOK_AGAIN)
    return Recording.from_files(folder)


def _require(name: str, value: int, least: int) -> None:
    if not hasattr(value, "__index__") or value < least:
        raise QuestionError(f"{name} is {value}, but must be an integer from {least} on", name)


def _require_word(name: str, value: str, words: Sequence[str]) -> None:
    if value not in words:
        raise QuestionError(f"{name} is {value!r}, but must be one of {', '.join(words)}", name)


def _require_one_tokenizer(tokenizer: Any, draft_tokenizer: Any) -> None:
    if tokenizer is None or draft_tokenizer is None:
        return
    of_target, of_draft = tokenizer.get_vocab(), draft_tokenizer.get_vocab()
    for text in sorted(of_target.keys() | of_draft.keys()):
        one, other = of_target.get(text, "none"), of_draft.get(text, "none")
        if one != other:
            raise QuestionError(f"draft_tokenizer has {text!r} as token {other}, but must have the target's vocabulary, "
                                f"where it is {one}", "draft_tokenizer")


def _texts(prompts: Path | Iterable[GivenPrompt], tokenizer: Any, vocab: int) -> tuple[list[_Text], list[str]]:
    """The prompts, and the names of their tasks in the order in which they first occur."""
    from specdec.adapters._prompts import RecordingError, read_prompts

    try:
        found = read_prompts(prompts)
    except RecordingError as error:
        raise QuestionError(str(error), "prompts") from None
    tasks: list[str] = []
    texts = []
    for prompt in found:
        tokens = prompt.content
        if isinstance(tokens, str):
            if tokenizer is None:
                raise QuestionError(f"tokenizer is missing: prompt {prompt.name} is a text", "tokenizer")
            tokens = [int(token) for token in tokenizer(tokens).input_ids]
        if not tokens:
            raise QuestionError(f"prompts: {prompt.name} has no token, but must have one at least", "prompts")
        worst = max(tokens, key=lambda token: abs(token - vocab / 2))
        if not 0 <= worst < vocab:
            raise QuestionError(f"prompts: {prompt.name} has token {worst}, but the models have {vocab} tokens", "prompts")
        if prompt.task is not None and prompt.task not in tasks:
            tasks.append(prompt.task)
        number = _core.prompt_id(" ".join(map(str, tokens)))
        texts.append(_Text(tokens, number, -1 if prompt.task is None else tasks.index(prompt.task)))
    return texts, tasks


def _require_room(name: str, model: Any, texts: Sequence[_Text], max_new_tokens: int) -> None:
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if context is not None and max_new_tokens >= context:
        raise QuestionError(f"max_new_tokens is {max_new_tokens}, but must be less than {context}, which the {name} reads",
                            "max_new_tokens")
    for place, text in enumerate(texts, 1):
        if context is not None and len(text.tokens) + max_new_tokens > context:
            raise QuestionError(f"prompts: number {place} has {len(text.tokens)} tokens, but must have "
                                f"{context - max_new_tokens} at most: the {name} reads {context}, and max_new_tokens is "
                                f"{max_new_tokens}", "prompts")


def _metadata(
    target: Any, draft: Any, sampling: Sampling, tier: str, vocab: int, tasks: Sequence[str]
) -> dict[str, str]:
    found = {
        "vocab_size": str(vocab),
        "temperature": repr(sampling.temperature),
        "p.model": str(target.config.name_or_path or type(target).__name__),
        "q.model": str(draft.config.name_or_path or type(draft).__name__),
        "engine": "transformers",
        "acceptance": "greedy" if sampling.temperature == 0 else "rejection",
        "logprob_space": "raw" if tier == "full" else "processed",
        "path": "target",
    }
    if tasks:
        found["tasks"] = json.dumps(tasks)
    if sampling.top_k > 0:
        found["top_k"] = str(sampling.top_k)
    if sampling.top_p < 1:
        found["top_p"] = repr(sampling.top_p)
    if sampling.min_p > 0:
        found["min_p"] = repr(sampling.min_p)
    return found


def _labels(texts: Sequence[_Text], sequences: Sequence[int], lengths: Sequence[int]) -> dict[str, Any]:
    import numpy as np

    found = {
        "seq": np.repeat(np.array(sequences, dtype=np.int64), lengths),
        "pos": np.concatenate([np.arange(length, dtype=np.int64) for length in lengths]),
        "prompt": np.repeat(np.array([text.prompt for text in texts], dtype=np.int64), lengths),
    }
    if any(text.task >= 0 for text in texts):
        found["task"] = np.repeat(np.array([text.task for text in texts], dtype=np.int32), lengths)
    return found


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _seed(seed: int, batch: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:{batch}".encode()).digest()[:8], "big") >> 1


def _shard(folder: pathlib.Path, number: int) -> pathlib.Path:
    return folder / f"shard-{number:06}.safetensors"


def _shards(folder: pathlib.Path, said: Mapping[str, str], batches: int) -> set[int]:
    """Those that are there, which must be of this recording."""
    if folder.suffix == ".safetensors" or (folder.exists() and not folder.is_dir()):
        raise QuestionError(f"output is {folder}, but must be a folder", "output")
    done = set()
    for path in sorted(folder.iterdir()) if folder.exists() else ():
        if path.name.startswith(".") or path.suffix == ".partial":
            continue
        name = re.fullmatch(r"shard-(\d{6})\.safetensors", path.name)
        if name is None or int(name[1]) >= batches:
            raise QuestionError(f"output: {folder} holds {path.name}, which is no shard of this recording; it must be a "
                                "new folder or one to go on with", "output")
        found = Recording.from_files(path).metadata
        for key, now in said.items():
            if found.get(key) != now:
                what = key.removeprefix("record.")
                raise QuestionError(f"output: {folder} was recorded with another {what}, {found.get(key, 'none')} and not "
                                    f"{now}; go on with the same, or name a new folder", what)
        done.add(int(name[1]))
    return done


def _place() -> tuple[int, int]:
    """The number of this process, and of all that write this recording."""
    from torch import distributed  # type: ignore[import-not-found,unused-ignore]

    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return 0, 1
