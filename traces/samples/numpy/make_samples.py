"""Writes the files of this folder. Needs numpy (made with 2.4); only the numbers below are in them."""
import numpy as np

i, j = np.mgrid[0:6, 0:5]
p = ((7 * i + 3 * j) % 11) / 4.0  # logits that even float16 holds exactly
q = ((5 * i + 2 * j) % 7) / 2.0
token = np.array([4, 0, 3, 1, 2, 2])
seq = np.array([10, 10, 10, 12, 12, 15])
task = np.array(["prose", "prose", "prose", "code", "code", "d\u00e9j\u00e0"])


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


probs = {"p": softmax(p).astype("f4"), "q": softmax(q).astype("f4")}
np.savez("stored.npz", token=token, seq=seq, task=task, **probs)
np.savez_compressed("deflated.npz", p_logits=p, q_logits=q, token=token.astype("u2"), extra=np.zeros((2, 2)))
np.save("p_logits.npy", p.astype("f2"))
np.save("q_logits.npy", q.astype("f2"))
np.save("objects.npy", np.array([1, "x"], dtype=object))
np.save("fortran.npy", np.asfortranarray(probs["p"]))
np.save("big_endian.npy", probs["p"].astype(">f4"))
