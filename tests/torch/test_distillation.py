"""python/examples/distill_draft.py, sim/models/train.py and train_smollm2.py: their losses, what they train, and that the
program finds the same acceptance."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import specdec
import torch
from models import SHIPPED, TOP, shipped, shipped_prompts, shipped_tokenizer
from safetensors.torch import load_file


def program(name: str, folder: pathlib.Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


distill_draft = program("distill_draft", TOP / "python" / "examples")
train = program("train", SHIPPED)
train_smollm2 = program("train_smollm2", SHIPPED)


def test_the_gradient_that_is_written_out_is_that_of_automatic_differentiation() -> None:
    torch.manual_seed(1)
    # More than two blocks of rows. Numbers that BF16 holds, so that both see the same ones.
    features, rows = (torch.randn(n, 16).bfloat16().float().requires_grad_() for n in (300, 50))
    final, teacher = torch.randn(300, 16).bfloat16(), torch.randn(50, 16).bfloat16()
    loss, entropy, rejected = train_smollm2.distillation_loss(features, rows, final, teacher)
    found = torch.autograd.grad(2 * loss, (features, rows))

    p = (final.float() @ teacher.float().T).softmax(-1)
    log_q = (features @ rows.T).log_softmax(-1)
    parts = -(p * log_q).sum(-1).mean(), 1 - torch.minimum(p, log_q.exp()).sum(-1).mean()
    assert (entropy, rejected) == pytest.approx([float(part.detach()) for part in parts], rel=2e-3)
    for weight in (0.3, 0.35):  # the second is the broken twin
        expected = torch.autograd.grad(2 * (weight * parts[0] + parts[1]), (features, rows), retain_graph=True)
        near = all(float((a - b).norm() / b.norm()) < 0.02 for a, b in zip(found, expected))
        assert near == (weight == train_smollm2.ENTROPY)


def test_losses_are_what_numpy_finds_and_the_paper_s_is_the_total_variation_distance() -> None:
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(30), (2, 20))
    rows = torch.tensor(np.log(p)), torch.tensor(np.log(q))
    np.testing.assert_allclose(distill_draft.kl(*rows), (p * np.log(p / q)).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(distill_draft.tv(*rows), 1 - np.minimum(p, q).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(distill_draft.d_lk(*rows), 1 - np.minimum(p, q).sum(axis=1), rtol=1e-9)
    for name, loss in distill_draft.LOSSES.items():
        torch.testing.assert_close(train.distance(name, *rows), loss(*rows), rtol=1e-12, atol=1e-12)
    logits = torch.tensor(np.log(q), requires_grad=True)
    gradients = [
        torch.autograd.grad(distill_draft.LOSSES[name](rows[0], logits.log_softmax(-1)).sum(), logits)[0]
        for name in ("tv", "d_lk")
    ]
    np.testing.assert_allclose(*gradients, atol=1e-12)


def alpha_of(draft: Any, folder: pathlib.Path, every: int = 1) -> Any:
    recording = specdec.record(
        shipped("target"), draft, shipped_prompts(every), tokenizer=shipped_tokenizer(), output=folder, max_new_tokens=64,
        batch_size=24)  # fmt: skip
    return specdec.analyze(recording).alpha


@pytest.mark.parametrize("loss", ["kl", "tv", "d_lk"])
def test_a_damaged_draft_is_mended_by_each_loss(loss: str, tmp_path: pathlib.Path) -> None:
    """Alpha of held-out text rises by more than both intervals, which chance alone does in fewer than 1 of 1,000 runs."""
    torch.manual_seed(1)
    target, draft = shipped("target"), shipped("draft")
    draft.model.norm.weight.data /= 2
    before = alpha_of(draft, tmp_path / "before", every=3)
    texts = distill_draft.write_texts(target, 32, 64, batch=32)
    assert texts.shape == (32, 64) and (texts[:, 0] == target.config.bos_token_id).all()
    distill_draft.distill(target, draft.train(), texts, distill_draft.LOSSES[loss], steps=60, batch=8)
    assert alpha_of(draft.eval(), tmp_path / "after", every=3).ci95[0] > before.ci95[1]


def test_the_program_plays_the_new_draft_and_counts_the_same_acceptance(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two independent counts: beyond 4 standard errors of their difference in 6 of 100,000 runs; as no draft is fixed,
    the same in each."""
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps(prompt) + "\n" for prompt in shipped_prompts(every=3)), encoding="utf-8")
    words = ["--output", str(tmp_path / "draft"), "--steps", "10", "--texts", "64", "--length", "32", "--prompts", str(prompts)]
    monkeypatch.setattr(sys, "argv", ["distill_draft.py", *words])
    distill_draft.main()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("alpha")]
    assert lines[0].startswith("alpha before 0.5") and lines[1].startswith("alpha after 0.")
    words = ["compare", "model", "--gamma", "1", "--draft-model", str(tmp_path / "draft"), "--prompts", str(prompts), "--format",
             "json"]
    played = subprocess.run([sys.executable, "-m", "specdec", *words], capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stderr
    counted = json.loads(played.stdout)["results"][0]["acceptance"]
    recorded = alpha_of(load(tmp_path / "draft"), tmp_path / "run", every=3)
    assert f"alpha after {recorded.value:.4f}" == lines[1][: len("alpha after 0.0000")]
    errors = [(high - low) / (2 * 1.96) for low, high in (counted["ci95"], recorded.ci95)]
    assert abs(counted["value"] - recorded.value) < 4 * np.hypot(*errors)


def load(folder: pathlib.Path) -> Any:
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def work_folder(folder: pathlib.Path) -> pathlib.Path:
    """The folder of train.py with both models of the shipped pair trained, but for a draft that is damaged."""
    for name in ("draft", "target"):
        net = {key: value.float() for key, value in load_file(SHIPPED / name / "model.safetensors").items()}
        if name == "draft":
            net["model.norm.weight"] /= 2
        (folder / "runs" / name).mkdir(parents=True)
        torch.save({"net": net}, folder / "runs" / name / "checkpoint.pt")
    (folder / "tokens").mkdir()
    shutil.copy(SHIPPED / "target" / "tokenizer.model", folder)
    return folder


def run_train(*words: object) -> list[str]:
    command = [sys.executable, str(SHIPPED / "train.py"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_text_is_written_from_the_rows_of_whole_passes() -> None:
    net = train.build_model(train.SHAPES["target"])
    tokens = torch.randint(3, 2000, (3, 12))
    caches = net.empty_caches(3, 12)
    with torch.no_grad():
        rows = torch.stack([net.next_logits(tokens[:, at], at, caches) for at in range(12)], 1)
        torch.testing.assert_close(rows, net.logits(tokens), rtol=1e-4, atol=1e-4)


def test_train_distills_a_draft_on_the_text_of_its_target_and_leaves_both_as_they_are(tmp_path: pathlib.Path) -> None:
    """Alpha rises by more than both intervals, which chance alone does in fewer than 1 of 1,000 runs."""
    work = work_folder(tmp_path / "work")
    runs = {path: path.read_bytes() for path in work.glob("runs/*/checkpoint.pt")}
    run_train("write", "--work", work, "--texts", 40, "--threads", 1)
    more = ["--minutes", "0.4", "--warmup", "2", "--lr-scale", "0.5", "--no-compile", "--threads", "1"]
    said = run_train("train", "--work", work, "--model", "draft", "--distill", "d_lk", *more)
    before, after = (re.findall(r"alpha (\S+) \(95%: (\S+) to (\S+)\)", line)[0] for line in said if "alpha" in line)
    assert float(before[2]) < float(after[1])
    assert {path: path.read_bytes() for path in runs} == runs
    run_train("export", "--work", work, "--distilled", "--out", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["draft"]
    exported, target = load(tmp_path / "out" / "draft"), shipped("target")
    texts = [torch.tensor(doc[None, :-1].astype(np.int64)) for doc in train.load_docs(work, "own", "heldout")]
    with torch.no_grad():
        alphas = [
            float(torch.minimum(target(text).logits.softmax(-1), exported(text).logits.softmax(-1)).sum(-1).mean()) for text in texts
        ]
    assert float(after[0]) == pytest.approx(np.mean(alphas), abs=1e-3)
