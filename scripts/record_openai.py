#!/usr/bin/env python3
"""Records a trace from two running servers: the target writes, both score what it wrote.

For each prompt the target generates at temperature 1 or 0 with nothing cut off. Prompt and output then go to both
servers as token ids, and each returns its log-probability of every generated token: all that exact replay needs.

  vLLM       POST /v1/completions with "return_token_ids", then with "prompt_logprobs": 0
  SGLang     POST /generate with "return_logprob", then over "input_ids" from "logprob_start_len": 0
  llama.cpp  POST /completion with "n_probs"; it scores what it samples alone, so that every token of the output is one
             request, over the cache of those before it, in which "logit_bias" leaves no other choice

The output is JSON Lines, one request a line after a first line of metadata; `specdec analyze F` reads it as it is. A
run that was stopped goes on where it ended: run the same command again. One that records nothing leaves no file. Needs
Python 3.9 or newer and nothing else.

Example:
  scripts/record_openai.py --target http://localhost:8000 --draft http://localhost:8001 \\
      --prompts prompts.jsonl --output run.jsonl
"""

import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import queue
import sys
import urllib.error
import urllib.request


class RecordingError(Exception):
    """One line: what, where, found, expected."""


class Server:
    """One model behind an HTTP server. Engines differ in how they are asked and in what they answer."""

    engine = ""

    def __init__(self, url, model, timeout, api_key):
        self.url = url.rstrip("/")
        self.model = model
        self.timeout = timeout
        self.headers = {"Content-Type": "application/json"}
        if api_key:
            self.headers["Authorization"] = "Bearer " + api_key

    def prepare(self, served):
        """Looks at the entry of /v1/models, and asks what else the engine needs to know."""

    def generate(self, prompt, max_tokens, temperature, seed):
        """(prompt token ids, generated token ids, what `score` would say of them or None where that is to be asked)"""
        raise NotImplementedError

    def score(self, prompt_ids, output_ids):
        """[(log-probability, rank, text)] of the generated tokens; the text None where the engine does not show it."""
        raise NotImplementedError

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=self.headers)
        try:
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

    def lacks(self, what, path):
        return RecordingError(f"{self.url}{path} answered without {what}; is this {self.engine}, and recent enough?")


class Vllm(Server):
    engine = "vllm"
    path = "/v1/completions"

    def generate(self, prompt, max_tokens, temperature, seed):
        answer = self.ask(self.path, {
            "model": self.model, "prompt": prompt, "max_tokens": max_tokens, "temperature": temperature, "seed": seed,
            # A model's generation_config.json may cut the distribution; a trace needs the whole one.
            "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "return_token_ids": True})
        try:
            choice = answer["choices"][0]
            return list(choice.get("prompt_token_ids") or answer["prompt_token_ids"]), list(choice["token_ids"]), None
        except (KeyError, IndexError, TypeError):
            raise self.lacks("prompt_token_ids and token_ids", self.path) from None

    def score(self, prompt_ids, output_ids):
        answer = self.ask(self.path, {
            "model": self.model, "prompt": prompt_ids + output_ids, "max_tokens": 1, "temperature": 0.0,
            "prompt_logprobs": 0})
        try:
            rows = answer["choices"][0]["prompt_logprobs"][len(prompt_ids):]
            entries = [row[str(token)] for row, token in zip(rows, output_ids)]
            scored = [(entry["logprob"], entry["rank"], entry.get("decoded_token")) for entry in entries]
        except (KeyError, IndexError, TypeError):
            raise self.lacks("prompt_logprobs of every generated token", self.path) from None
        if len(scored) != len(output_ids):
            raise self.lacks(f"prompt_logprobs of all {len(output_ids)} generated tokens", self.path)
        return scored


class Sglang(Server):
    engine = "sglang"
    path = "/generate"

    def generate(self, prompt, max_tokens, temperature, seed):
        given = {"text": prompt} if isinstance(prompt, str) else {"input_ids": prompt}
        answer = self.ask(self.path, {
            **given, "return_logprob": True, "logprob_start_len": 0,
            "sampling_params": {"max_new_tokens": max_tokens, "temperature": temperature, "top_p": 1.0, "top_k": -1,
                                "min_p": 0.0, "repetition_penalty": 1.0, "sampling_seed": seed}})
        try:
            meta = answer["meta_info"]
            return ([entry[1] for entry in meta["input_token_logprobs"]],
                    [entry[1] for entry in meta["output_token_logprobs"]], None)
        except (KeyError, IndexError, TypeError):
            raise self.lacks("meta_info.input_token_logprobs and output_token_logprobs", self.path) from None

    def score(self, prompt_ids, output_ids):
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
            scored = [(value[0], 1 if top[0][1] == value[1] else 2, value[2]) for value, top in zip(values, best)]
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

    def prepare(self, served):
        try:
            self.vocabulary = served["meta"]["n_vocab"]
            slots = self.ask("/props")["total_slots"]
        except (KeyError, TypeError):
            raise self.lacks("meta.n_vocab or total_slots", "/v1/models or /props") from None
        self.slots = queue.SimpleQueue()
        for slot in range(slots):
            self.slots.put(slot)

    @contextlib.contextmanager
    def slot(self):
        """A slot that no other text has meanwhile, and with it the cache of the tokens before the next. Left to choose
        among busy slots itself, 0.5.0 answered with log-probabilities of other contexts in 10 of 72 texts."""
        slot = self.slots.get()
        try:
            yield slot
        finally:
            self.slots.put(slot)

    def ids_of(self, text, add_special):
        try:
            return list(self.ask("/tokenize", {"content": text, "add_special": add_special})["tokens"])
        except (KeyError, TypeError):
            raise self.lacks("tokens", "/tokenize") from None

    def complete(self, prompt_ids, **how):
        """(token ids, entries of completion_probabilities); no entry of a token that ends inside a character."""
        answer = self.ask(self.path, {"model": self.model, "prompt": prompt_ids, **self.plain_sampling, **how})
        try:
            return answer["tokens"], answer.get("completion_probabilities", [])
        except (KeyError, TypeError, AttributeError):
            raise self.lacks("tokens", self.path) from None

    @staticmethod
    def entry_of(found, best):
        """Ranks are 1 for the most probable token and 2 for any other; a part of a character has no text of its own."""
        text = bytes(found["bytes"]).decode("utf-8", "replace")
        return found["logprob"], 1 if best["id"] == found["id"] else 2, None if "\ufffd" in text else text or None

    def generate(self, prompt, max_tokens, temperature, seed):
        prompt_ids = self.ids_of(prompt, True) if isinstance(prompt, str) else list(prompt)
        with self.slot() as slot:
            tokens, entries = self.complete(prompt_ids, n_predict=max_tokens, temperature=temperature, seed=seed,
                                            n_probs=1, id_slot=slot)
        # With a draft behind it the server lists certainties and no top token; see `complete` for the other gaps.
        try:
            whole = [entry["id"] for entry in entries] == tokens and all(entry["top_logprobs"] for entry in entries)
            return prompt_ids, tokens, [self.entry_of(entry, entry["top_logprobs"][0])
                                        for entry in entries] if whole else None
        except (KeyError, TypeError):
            raise self.lacks("completion_probabilities with id, logprob and top_logprobs", self.path) from None

    def score(self, prompt_ids, output_ids):
        text = prompt_ids + output_ids
        with self.slot() as slot:
            return [self.score_next(text[:place], text[place], slot) for place in range(len(prompt_ids), len(text))]

    def score_next(self, before, token, slot):
        def forced(sampled, n_probs):
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


ENGINES = {"vllm": Vllm, "sglang": Sglang, "llamacpp": LlamaCpp}


def connect(url, model, engine, timeout, api_key):
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


def read_prompts(path):
    """[(id, task, prompt)]: JSON Lines with "text" (or "prompt") or "tokens", or one text a line in a .txt file."""
    prompts = []
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                if path.endswith(".txt"):
                    prompts.append((str(number), None, line.rstrip("\n")))
                    continue
                try:
                    entry = json.loads(line)
                    prompt = entry.get("text") or entry.get("prompt") or entry.get("tokens")
                except (ValueError, AttributeError):
                    prompt = None
                if not prompt:
                    raise RecordingError(f"{path}:{number}: prompt is missing, but must be \"text\" or \"tokens\"")
                prompts.append((str(entry.get("id", number)), entry.get("task"), prompt))
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path} cannot be read: {error}") from None
    if not prompts:
        raise RecordingError(f"{path} holds no prompt")
    if len({name for name, _, _ in prompts}) != len(prompts):
        raise RecordingError(f"{path}: id is given twice, but must be a prompt's own")
    return prompts


def seed_of(seed, name):
    """The request's own seed: the same for the same prompt in whatever order the prompts are sent."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:4], "big") >> 1


def record(prompt, target, draft, options):
    """One line of the output, or None where the target wrote nothing."""
    name, task, text = prompt
    prompt_ids, output_ids, by_target = target.generate(text, options.max_tokens, options.temperature,
                                                        seed_of(options.seed, name))
    if not output_ids:
        return None
    by_target = by_target or target.score(prompt_ids, output_ids)
    by_draft = draft.score(prompt_ids, output_ids)
    for place, (one, other) in enumerate(zip(by_target, by_draft)):
        if one[2] is not None and other[2] is not None and one[2] != other[2]:
            raise RecordingError(f"prompt {name}: token {output_ids[place]} is {one[2]!r} to the target and {other[2]!r} "
                                 "to the draft, but both models must have one vocabulary")
    line = {"id": name}
    if task is not None:
        line["task"] = task
    # The same for all texts of one prompt, whatever their ids.
    line["prompt"] = hashlib.sha256(json.dumps(prompt_ids).encode()).hexdigest()[:16]
    line["prompt_tokens"] = len(prompt_ids)
    line["token_ids"] = output_ids
    for key, scored in (("target", by_target), ("draft", by_draft)):
        line[key] = {"logprobs": [entry[0] for entry in scored], "ranks": [entry[1] for entry in scored]}
    return line


def metadata_of(target, draft, options):
    return {"format": "specdec-record", "version": 1, "target_model": target.model, "draft_model": draft.model,
            "engine": target.engine, "draft_engine": draft.engine, "temperature": options.temperature, "top_k": 0,
            "top_p": 1.0, "max_tokens": options.max_tokens, "seed": options.seed, "logprob_space": "raw",
            "path": "target"}


def resume(path, metadata):
    """Ids that the file already holds; a last line that was cut off is removed."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise RecordingError(f"{path} is no file, but must be one that can be gone on with")
    try:
        with open(path, "rb") as existing:
            content = existing.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error}") from None
    whole = content.rfind(b"\n") + 1
    lines = content[:whole].splitlines()
    if not lines:
        return None
    try:
        found = json.loads(lines[0])
        done = {json.loads(line)["id"] for line in lines[1:]}
    except (ValueError, KeyError, TypeError):
        raise RecordingError(f"{path} exists, but is not a recording of this script") from None
    if found != metadata:
        other = [key for key in metadata if not isinstance(found, dict) or found.get(key) != metadata[key]]
        raise RecordingError(f"{path} was recorded with another {', '.join(other) or 'command'}; "
                             "--output must name a new file")
    if whole != len(content):
        os.truncate(path, whole)
    return done


def append(output, line):
    try:
        output.write(json.dumps(line, separators=(",", ":")) + "\n")
        output.flush()
        os.fsync(output.fileno())
    except OSError as error:
        raise RecordingError(f"{output.name} cannot be written: {error}") from None


def record_all(prompts, target, draft, options, use):
    """use(line) of every prompt to which the target writes anything, in the order in which they are finished."""
    with concurrent.futures.ThreadPoolExecutor(options.concurrency) as pool:
        requests = [pool.submit(record, prompt, target, draft, options) for prompt in prompts]
        try:
            for request in concurrent.futures.as_completed(requests):
                line = request.result()
                if line is not None:
                    use(line)
        except (RecordingError, KeyboardInterrupt):
            for request in requests:
                request.cancel()
            raise


def run(options):
    prompts = read_prompts(options.prompts)[:options.limit]
    api_key = os.environ.get(options.api_key_variable, "")
    target = connect(options.target, options.target_model, options.target_engine, options.timeout, api_key)
    draft = connect(options.draft, options.draft_model, options.draft_engine, options.timeout, api_key)
    metadata = metadata_of(target, draft, options)
    done = resume(options.output, metadata)
    missing = [prompt for prompt in prompts if prompt[0] not in (done or ())]
    written = len(prompts) - len(missing)
    try:
        output = open(options.output, "a" if done is not None else "w", encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{options.output} cannot be written: {error}") from None

    def use(line):
        nonlocal written
        if done is None and written == 0:
            append(output, metadata)
        append(output, line)
        written += 1
        if sys.stderr.isatty():
            print(f"\r{written} of {len(prompts)} requests", end="", file=sys.stderr, flush=True)

    try:
        record_all(missing, target, draft, options, use)
        if written == 0:
            raise RecordingError(f"{target.url} wrote nothing to any of {len(prompts)} prompts")
    except RecordingError as error:
        raise RecordingError(f"{error}; {options.output} holds {written} of {len(prompts)} requests: run the same "
                             "command again to go on") if written else error
    finally:
        output.close()
        if done is None and written == 0:
            os.remove(options.output)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(f"{options.output}: {written} requests; next: specdec analyze {options.output}")


def at_least_one(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parse(arguments):
    first_line, _, rest = __doc__.partition("\n")
    parser = argparse.ArgumentParser(description=first_line, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--target", required=True, metavar="URL", help="server of the target, for instance http://localhost:8000")
    add("--draft", required=True, metavar="URL", help="server of the draft")
    add("--prompts", required=True, metavar="FILE", help='JSON Lines with "text" or "tokens", or a .txt file')
    add("--output", required=True, metavar="FILE", help="JSON Lines to write or to go on with")
    add("--temperature", type=float, choices=(0.0, 1.0), default=1.0, help="1 (default) or 0, which compares ranks")
    add("--max-tokens", type=at_least_one, default=256, metavar="N", help="longest output (default 256)")
    add("--limit", type=at_least_one, metavar="N", help="take the first N prompts only")
    add("--seed", type=int, default=1, metavar="S", help="seed of the target's sampler (default 1)")
    add("--concurrency", type=at_least_one, default=8, metavar="N", help="requests at a time (default 8)")
    add("--timeout", type=float, default=600.0, metavar="SECONDS", help="longest wait for an answer (default 600)")
    add("--target-model", default="", metavar="NAME", help="where the server has several; default the first it lists")
    add("--draft-model", default="", metavar="NAME")
    add("--target-engine", choices=("auto", *ENGINES), default="auto", help="default: what the server says it is")
    add("--draft-engine", choices=("auto", *ENGINES), default="auto")
    add("--api-key-variable", default="OPENAI_API_KEY", metavar="NAME", help="environment variable that holds the key")
    return parser.parse_args(arguments)


def main():
    try:
        run(parse(sys.argv[1:]))
    except RecordingError as error:
        print(f"record_openai: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("record_openai: stopped; run the same command again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
