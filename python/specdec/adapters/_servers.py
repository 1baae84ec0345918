"""Models behind HTTP servers. Engines differ in how they are asked and in what they answer.

  vLLM       POST /v1/completions with "return_token_ids", then with "prompt_logprobs": 0
  SGLang     POST /generate with "return_logprob", then over "input_ids" from "logprob_start_len": 0
  llama.cpp  POST /completion with "n_probs"; it scores what it samples alone, so that every token of the output is one
             request, over the cache of those before it, in which "logit_bias" leaves no other choice
"""

from __future__ import annotations

import contextlib
import json
import queue
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ._prompts import RecordingError


class Score(NamedTuple):
    """The score of one generated token; the text is None where the engine does not show it."""

    logprob: float
    rank: int
    text: str | None


class Generation(NamedTuple):
    """`scores` is what `score` would say of the output, None where that is to be asked."""

    prompt_ids: list[int]
    output_ids: list[int]
    scores: list[Score] | None


class Server:
    """One model behind an HTTP server."""

    engine = ""

    def __init__(self, url: str, model: str, timeout: float, api_key: str) -> None:
        self.url = url.rstrip("/")
        self.model = model
        self.timeout = timeout
        self.headers = {"Content-Type": "application/json"}
        if api_key:
            self.headers["Authorization"] = "Bearer " + api_key

    def prepare(self, served: Any) -> None:
        """Looks at the entry of /v1/models, and asks what else the engine needs to know."""

    def generate(self, prompt: str | list[int], max_tokens: int, temperature: float, seed: int) -> Generation:
        raise NotImplementedError

    def score(self, prompt_ids: list[int], output_ids: list[int]) -> list[Score]:
        """The scores of the generated tokens."""
        raise NotImplementedError

    def ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        try:
            request = urllib.request.Request(self.url + path, data=data, headers=self.headers)
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            told = error.read(300).decode("utf-8", "replace").replace("\n", " ")
            raise RecordingError(f"{self.url}{path} answered {error.code}: {told}") from None
        except (OSError, ValueError) as error:
            raise RecordingError(f"{self.url}{path} cannot be reached: {error}") from None
        try:
            return json.loads(content)
        except ValueError:
            raise RecordingError(f"{self.url}{path} answered with something that is not JSON") from None

    def lacks(self, what: str, path: str) -> RecordingError:
        return RecordingError(f"{self.url}{path} answered without {what}; is this {self.engine}, and recent enough?")


class Vllm(Server):
    engine = "vllm"
    path = "/v1/completions"

    def generate(self, prompt: str | list[int], max_tokens: int, temperature: float, seed: int) -> Generation:
        answer = self.ask(self.path, {
            "model": self.model, "prompt": prompt, "max_tokens": max_tokens, "temperature": temperature, "seed": seed,
            # A model's generation_config.json may cut the distribution; a trace needs the whole one.
            "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "return_token_ids": True})
        try:
            choice = answer["choices"][0]
            prompt_ids = list(choice.get("prompt_token_ids") or answer["prompt_token_ids"])
            return Generation(prompt_ids, list(choice["token_ids"]), None)
        except (KeyError, IndexError, TypeError):
            raise self.lacks("prompt_token_ids and token_ids", self.path) from None

    def score(self, prompt_ids: list[int], output_ids: list[int]) -> list[Score]:
        answer = self.ask(self.path, {
            "model": self.model, "prompt": prompt_ids + output_ids, "max_tokens": 1, "temperature": 0.0,
            "prompt_logprobs": 0})
        try:
            rows = answer["choices"][0]["prompt_logprobs"][len(prompt_ids):]
            entries = [row[str(token)] for row, token in zip(rows, output_ids)]
            scored = [Score(entry["logprob"], entry["rank"], entry.get("decoded_token")) for entry in entries]
        except (KeyError, IndexError, TypeError):
            raise self.lacks("prompt_logprobs of every generated token", self.path) from None
        if len(scored) != len(output_ids):
            raise self.lacks(f"prompt_logprobs of all {len(output_ids)} generated tokens", self.path)
        return scored


class Sglang(Server):
    engine = "sglang"
    path = "/generate"

    def generate(self, prompt: str | list[int], max_tokens: int, temperature: float, seed: int) -> Generation:
        given: dict[str, Any] = {"text": prompt} if isinstance(prompt, str) else {"input_ids": prompt}
        answer = self.ask(self.path, {
            **given, "return_logprob": True, "logprob_start_len": 0,
            "sampling_params": {"max_new_tokens": max_tokens, "temperature": temperature, "top_p": 1.0, "top_k": -1,
                                "min_p": 0.0, "repetition_penalty": 1.0, "sampling_seed": seed}})
        try:
            meta = answer["meta_info"]
            return Generation([entry[1] for entry in meta["input_token_logprobs"]],
                              [entry[1] for entry in meta["output_token_logprobs"]], None)
        except (KeyError, IndexError, TypeError):
            raise self.lacks("meta_info.input_token_logprobs and output_token_logprobs", self.path) from None

    def score(self, prompt_ids: list[int], output_ids: list[int]) -> list[Score]:
        """Ranks are 1 for the most probable token and 2 for any other, since only one is returned."""
        answer = self.ask(self.path, {
            "input_ids": prompt_ids + output_ids, "return_logprob": True, "logprob_start_len": 0,
            "top_logprobs_num": 1, "return_text_in_logprobs": True,
            "sampling_params": {"max_new_tokens": 1, "temperature": 0.0}})
        try:
            meta = answer["meta_info"]
            values = meta["input_token_logprobs"][len(prompt_ids):]
            best = meta["input_top_logprobs"][len(prompt_ids):]
            found = [entry[1] for entry in values]
            scored = [Score(value[0], 1 if top[0][1] == value[1] else 2, value[2]) for value, top in zip(values, best)]
        except (KeyError, IndexError, TypeError):
            raise self.lacks("meta_info.input_token_logprobs and input_top_logprobs", self.path) from None
        if found != output_ids or len(scored) != len(output_ids):
            raise self.lacks(f"log-probabilities of the {len(output_ids)} tokens that were asked for", self.path)
        return scored


class LlamaCpp(Server):
    engine = "llamacpp"
    path = "/completion"
    # Every sampler that the server may have been started with, off. A repetition penalty would be one.
    plain_sampling = {"samplers": ["temperature"], "dynatemp_range": 0.0, "mirostat": 0, "cache_prompt": True,
                      "return_tokens": True}
    certain = 1e6  # added to a logit: no other token is then sampled. What is reported is the model's own

    def prepare(self, served: Any) -> None:
        try:
            self.vocabulary = served["meta"]["n_vocab"]
            slots = self.ask("/props")["total_slots"]
        except (KeyError, TypeError):
            raise self.lacks("meta.n_vocab or total_slots", "/v1/models or /props") from None
        self.slots: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(slots):
            self.slots.put(slot)

    @contextlib.contextmanager
    def slot(self) -> Iterator[int]:
        """A slot that no other text has meanwhile, and with it the cache of the tokens before the next. Left to choose
        among busy slots itself, 0.5.0 answered with log-probabilities of other contexts in 10 of 72 texts."""
        slot = self.slots.get()
        try:
            yield slot
        finally:
            self.slots.put(slot)

    def ids_of(self, text: str, add_special: bool) -> list[int]:
        try:
            return list(self.ask("/tokenize", {"content": text, "add_special": add_special})["tokens"])
        except (KeyError, TypeError):
            raise self.lacks("tokens", "/tokenize") from None

    def complete(self, prompt_ids: Sequence[int], **how: Any) -> tuple[list[int], list[Any]]:
        """(token ids, entries of completion_probabilities); no entry of a token that ends inside a character."""
        answer = self.ask(self.path, {"model": self.model, "prompt": prompt_ids, **self.plain_sampling, **how})
        try:
            return answer["tokens"], answer.get("completion_probabilities", [])
        except (KeyError, TypeError, AttributeError):
            raise self.lacks("tokens", self.path) from None

    @staticmethod
    def entry_of(found: Any, best: Any) -> Score:
        """Ranks are 1 for the most probable token and 2 for any other; a part of a character has no text of its own."""
        text = bytes(found["bytes"]).decode("utf-8", "replace")
        return Score(found["logprob"], 1 if best["id"] == found["id"] else 2, None if "\ufffd" in text else text or None)

    def generate(self, prompt: str | list[int], max_tokens: int, temperature: float, seed: int) -> Generation:
        prompt_ids = self.ids_of(prompt, True) if isinstance(prompt, str) else list(prompt)
        with self.slot() as slot:
            tokens, entries = self.complete(prompt_ids, n_predict=max_tokens, temperature=temperature, seed=seed,
                                            n_probs=1, id_slot=slot)
        # With a draft behind it the server lists certainties and no top token; see `complete` for the other gaps.
        try:
            whole = [entry["id"] for entry in entries] == tokens and all(entry["top_logprobs"] for entry in entries)
            scores = [self.entry_of(entry, entry["top_logprobs"][0]) for entry in entries] if whole else None
            return Generation(prompt_ids, tokens, scores)
        except (KeyError, TypeError):
            raise self.lacks("completion_probabilities with id, logprob and top_logprobs", self.path) from None

    def score(self, prompt_ids: list[int], output_ids: list[int]) -> list[Score]:
        text = prompt_ids + output_ids
        with self.slot() as slot:
            return [self.score_next(text[:place], text[place], slot) for place in range(len(prompt_ids), len(text))]

    def score_next(self, before: Sequence[int], token: int, slot: int) -> Score:
        def forced(sampled: int, n_probs: int) -> list[Any]:
            return self.complete(before, n_predict=1, temperature=0.0, n_probs=n_probs, id_slot=slot,
                                 logit_bias=[[sampled, self.certain]])[1]

        try:
            entries = forced(token, 1)
            if entries:
                found, best = entries[0], entries[0]["top_logprobs"][0]
            else:  # The token ends inside a character: it is found among all, beside one that is whole.
                listed = forced(self.ids_of("a", False)[-1], self.vocabulary)[0]["top_logprobs"]
                found, best = next(entry for entry in listed if entry["id"] == token), listed[0]
            if found["id"] != token:
                raise RecordingError(f"{self.url}{self.path} sampled token {found['id']}, but only {token} was allowed")
            return self.entry_of(found, best)
        except (KeyError, IndexError, TypeError, StopIteration):
            raise self.lacks("completion_probabilities with id, logprob and top_logprobs", self.path) from None


ENGINES: dict[str, type[Server]] = {"vllm": Vllm, "sglang": Sglang, "llamacpp": LlamaCpp}


def connect(url: str, *, model: str = "", engine: str = "auto", timeout: float = 600.0, api_key: str = "") -> Server:
    """The server behind a URL: which engine it is and which model it serves."""
    listed = Server(url, model, timeout, api_key).ask("/v1/models")
    try:
        served = listed["data"][0]
        name, owner = served["id"], served.get("owned_by", "")
    except (KeyError, IndexError, TypeError):
        raise RecordingError(f"{url}/v1/models lists no model") from None
    engine = engine if engine != "auto" else owner
    if engine not in ENGINES:
        raise RecordingError(f"{url} is served by {engine or 'an unnamed engine'}, but must be one of {', '.join(ENGINES)}; "
                             "--target-engine and --draft-engine say which")
    server = ENGINES[engine](url, model or name, timeout, api_key)
    server.prepare(served)
    return server
