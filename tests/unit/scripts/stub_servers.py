"""HTTP servers that answer as vLLM, SGLang and llama.cpp's do, over a model of 26 letters and an end token.

llama.cpp's is after what llama-server 0.5.0 was seen to answer over models converted to GGUF.

The next letter depends on the last one only, so every log-probability can be computed again by the test.
"""

import http.server
import json
import math
import random
import threading

VOCABULARY = [chr(ord("a") + i) for i in range(26)] + ["<end>"]
END = 26


def logits(flavour, last):
    source = random.Random(f"{flavour}:{last}")
    return [source.gauss(0, 2) for _ in VOCABULARY]


def logprobs(flavour, last):
    row = logits(flavour, last)
    total = math.log(sum(math.exp(x) for x in row))
    return [x - total for x in row]


def rank(row, token):
    return 1 + sum(x > row[token] for x in row)


def generate(flavour, prompt, request_seed, max_tokens, temperature):
    source = random.Random(request_seed)
    ids = list(prompt)
    while len(ids) < len(prompt) + max_tokens and ids[-1] != END:
        row = logprobs(flavour, ids[-1])
        if temperature == 0:
            ids.append(max(range(len(row)), key=row.__getitem__))
        else:
            ids.append(source.choices(range(len(row)), [math.exp(x) for x in row])[0])
    return ids[len(prompt):]


def ids_of(prompt):
    return [ord(c) - ord("a") for c in prompt if c.isalpha()] if isinstance(prompt, str) else list(prompt)


class Stub(http.server.ThreadingHTTPServer):
    """`fail_after` requests the server answers 500; `vocabulary` can differ from the other server's. llama.cpp's may
    speculate, and `part_of_character` is a token whose text ends inside a character."""

    def __init__(self, engine, flavour, vocabulary=None, fail_after=None, speculates=False, part_of_character=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.engine, self.flavour, self.fail_after = engine, flavour, fail_after
        self.speculates, self.part_of_character = speculates, part_of_character
        self.vocabulary = vocabulary or VOCABULARY
        self.requests = []
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, body, status=200):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        if self.path == "/props" and self.server.engine == "llamacpp":
            return self.answer({"total_slots": 2})
        self.answer({"object": "list", "data": [{"id": "letters-" + self.server.flavour, "object": "model",
                                                 "owned_by": self.server.engine, "meta": {"n_vocab": 27}}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(body)
            if self.server.fail_after is not None and len(self.server.requests) > self.server.fail_after:
                return self.answer({"error": {"message": "out of memory"}}, 500)
        answers = {"vllm": {"/v1/completions": self.vllm}, "sglang": {"/generate": self.sglang},
                   "llamacpp": {"/tokenize": self.tokenize, "/completion": self.llamacpp}}[self.server.engine]
        if self.path not in answers:
            return self.answer({"error": {"message": "Not Found"}}, 404)
        return self.answer(answers[self.path](body))

    def vllm(self, body):
        prompt = ids_of(body["prompt"])
        output = generate(self.server.flavour, prompt, body.get("seed"), body["max_tokens"], body["temperature"])
        choice = {"index": 0, "text": "".join(self.server.vocabulary[t] for t in output), "finish_reason": "length"}
        if body.get("return_token_ids"):
            choice |= {"prompt_token_ids": prompt, "token_ids": output}
        if body.get("prompt_logprobs") is not None:
            rows = [None]
            for last, token in zip(prompt, prompt[1:]):
                row = logprobs(self.server.flavour, last)
                rows.append({str(token): {"logprob": row[token], "rank": rank(row, token),
                                          "decoded_token": self.server.vocabulary[token]}})
            choice["prompt_logprobs"] = rows
        return {"id": "cmpl-1", "object": "text_completion", "choices": [choice]}

    def sglang(self, body):
        prompt = ids_of(body.get("text", body.get("input_ids")))
        how = body["sampling_params"]
        output = generate(self.server.flavour, prompt, how.get("sampling_seed"), how["max_new_tokens"],
                          how["temperature"])
        shows_text = body.get("return_text_in_logprobs")

        def entry(row, token):
            return [row[token], token, self.server.vocabulary[token] if shows_text else None]

        values, best = [[None, prompt[0], None]], [None]
        text = prompt + output
        for last, token in zip(text, text[1:]):
            row = logprobs(self.server.flavour, last)
            values.append(entry(row, token))
            best.append([entry(row, max(range(len(row)), key=row.__getitem__))])
        split = len(prompt)
        return {"text": "", "meta_info": {
            "prompt_tokens": split, "completion_tokens": len(output), "input_token_logprobs": values[:split],
            "output_token_logprobs": values[split:], "input_top_logprobs": best[:split]}}

    def tokenize(self, body):
        return {"tokens": ids_of(body["content"])}

    def llamacpp(self, body):
        prompt = body["prompt"]
        allowed = body.get("logit_bias")
        output = ([allowed[0][0]] if allowed else
                  generate(self.server.flavour, prompt, body.get("seed"), body["n_predict"], body["temperature"]))
        entries, kept = [], b""
        text = prompt[-1:] + output
        for place, (last, token) in enumerate(zip(text, text[1:])):
            kept += self.bytes_of(token)
            if kept.endswith(b"\xc3"):  # no entry until the character is whole
                continue
            row = logprobs(self.server.flavour, last)
            best = sorted(range(len(row)), key=row.__getitem__, reverse=True)[:body["n_probs"]]
            guessed = self.server.speculates and place > 0  # a draft was verified: llama-server knows no probability
            entries.append({"id": token, "token": kept.decode("utf-8", "replace"), "bytes": list(kept),
                            "logprob": 0.0 if guessed else row[token],
                            "top_logprobs": [] if guessed else [
                                {"id": t, "token": "", "bytes": list(self.bytes_of(t)), "logprob": row[t]}
                                for t in best]})
            kept = b""
        answer = {"content": "", "tokens": output}
        return answer | {"completion_probabilities": entries} if entries else answer

    def bytes_of(self, token):
        if token == self.server.part_of_character:
            return b"\xc3"
        return b"" if token == END else self.server.vocabulary[token].encode()
