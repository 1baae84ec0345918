#!/usr/bin/env python3
"""Build the training corpus of the simulated model pair from Debian packages.

Usage:
    prepare_corpus.py --work DIR [--no-download]

Steps:
 1. download  fetches the packages named in SOURCES with ``apt-get download``
              and unpacks them below DIR/packages with ``dpkg -x`` (nothing is
              installed).  Debian 12 (bookworm) package sources are expected.
 2. extract   turns every package into documents of plain UTF-8 text.
 3. filter    drops generated tables, licence headers, files under other
              licences and duplicates.
 4. split     assigns each document to train or heldout by a hash of its key.

Output (one JSON object a line: {"source", "key", "text"}, sorted by key):
    DIR/corpus/{prose,docs,code}.{train,heldout}.jsonl
    DIR/corpus/stats.json     package versions, documents and characters

The output is a function of the package versions alone.  Only the standard
library is used.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html.parser
import json
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

# Share of the documents held out, in thousandths, per task.
HELDOUT_PERMILLE = 15

# Documents outside this range of characters are dropped (code, docs) so that
# neither stubs nor machine-made tables dominate.
MIN_CHARS = 200
MAX_CHARS = 250_000

# task -> packages that contribute to it
SOURCES: dict[str, list[str]] = {
    "prose": ["bible-kjv-text", "sword-text-web", "jargon-text", "dict-devil"],
    "docs": ["sqlite3-doc", "postgresql-doc-15", "python3.11-doc"],
    "code": [
        "libpython3.11-minimal",
        "libpython3.11-stdlib",
        "libpython3.11-testsuite",
        "python3-numpy",
        "python3-django",
        "python3-networkx",
    ],
}
# Needed to read a source, but not itself a source of text.
TOOLS = ["bible-kjv"]  # the reader of the compressed KJV data file

# OSIS names of the 66 books in the order of the King James Version, used to
# give a chapter the same key in every translation.
BOOKS = (
    "Gen Exod Lev Num Deut Josh Judg Ruth 1Sam 2Sam 1Kgs 2Kgs 1Chr 2Chr Ezra "
    "Neh Esth Job Ps Prov Eccl Song Isa Jer Lam Ezek Dan Hos Joel Amos Obad "
    "Jonah Mic Nah Hab Zeph Hag Zech Mal Matt Mark Luke John Acts Rom 1Cor "
    "2Cor Gal Eph Phil Col 1Thess 2Thess 1Tim 2Tim Titus Phlm Heb Jas 1Pet "
    "2Pet 1John 2John 3John Jude Rev"
).split()

Doc = tuple[str, str]  # (key, text)


def heldout(key: str) -> bool:
    """Fixed hash rule that assigns a document to the held-out part."""
    digest = hashlib.sha256(key.encode()).digest()
    return int.from_bytes(digest[:8], "big") % 1000 < HELDOUT_PERMILLE


def tidy(text: str) -> str:
    """Normalise line ends, strip trailing blanks, keep indentation."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    text = text.replace("\f", "\n").replace("\ufeff", "")
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", text)
    return text.strip("\n") + "\n"


def unwrap(text: str, width: int) -> str:
    """Join the lines of filled paragraphs (all lines but the last > width)."""
    out = []
    for para in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in para.strip("\n").split("\n")]
        if len(lines) > 1 and all(len(line) > width for line in lines[:-1]):
            lines = [" ".join(lines)]
        out.append("\n".join(lines))
    return "\n\n".join(out)


# ---------------------------------------------------------------- prose


def read_kjv(root: Path) -> Iterator[Doc]:
    """King James Version, one document a chapter, one line a verse."""
    tool = root / "bible-kjv/usr/bin/bible"
    data = root / "bible-kjv-text/usr/lib"
    raw = subprocess.run(
        [tool, "-p", data, "-f", "-l10000", "Gen1:1-Rev22:21"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True,
    ).stdout.decode("latin-1")
    names: list[str] = []
    chapters: dict[tuple[int, int], list[str]] = {}
    for line in raw.split("\n"):
        m = re.match(r"([1-3]?[A-Za-z]+)(\d+):(\d+) (.*)", line)
        if not m:
            continue
        if not names or names[-1] != m[1]:
            names.append(m[1])
        chapters.setdefault((len(names) - 1, int(m[2])), []).append(m[4].strip())
    if len(names) != len(BOOKS):
        raise SystemExit(f"KJV: {len(names)} books, expected {len(BOOKS)}")
    for (book, chapter), verses in chapters.items():
        yield f"bible/{BOOKS[book]}.{chapter}", "\n".join(verses)


def read_web(root: Path) -> Iterator[Doc]:
    """World English Bible from its SWORD module (zlib blocks of OSIS)."""
    folder = next((root / "sword-text-web/usr/share/sword/modules/texts/ztext").iterdir())
    for part in ("ot", "nt"):
        index = (folder / f"{part}.bzs").read_bytes()
        data = (folder / f"{part}.bzz").read_bytes()
        osis = ""
        for at in range(0, len(index), 12):
            offset, size, _ = struct.unpack_from("<III", index, at)
            if size:
                osis += zlib.decompress(data[offset:offset + size]).decode() + "\n"
        pieces = re.split(r'<chapter [^>]*osisID="([^"]+)"[^>]*sID=[^>]*>', osis)
        for key, body in zip(pieces[1::2], pieces[2::2]):
            if key.startswith(("DanGr", "EsthGr")):
                continue  # second versions of Daniel and Esther
            body = re.split(r"<chapter [^>]*eID=", body)[0]
            body = re.sub(r"<note.*?</note>", " ", body, flags=re.S)
            body = re.sub(r"<title.*?</title>", "\n", body, flags=re.S)
            body = re.sub(r'<(?:div|lg?)\b[^>]*eID=[^>]*>|</lg?>', "\n", body)
            body = re.sub(r"<[^>]+>", "", body)
            lines = (re.sub(r"\s+", " ", line).strip() for line in body.split("\n"))
            text = "\n".join(line for line in lines if line)
            text = re.sub(r" +([,.;:?!\u2019\u201d])", r"\1", text)
            for a, b in (("\u2019", "'"), ("\u2018", "'"), ("\u201c", '"'),
                         ("\u201d", '"'), ("\u2014", "--")):
                text = text.replace(a, b)
            yield f"bible/{key}", text


def grouped(prefix: str, entries: list[str], size: int) -> Iterator[Doc]:
    """Join runs of `size` short entries into one document each."""
    for at in range(0, len(entries), size):
        yield f"{prefix}/{at // size:04d}", "\n\n".join(entries[at:at + size])


def read_jargon(root: Path) -> Iterator[Doc]:
    """The Jargon File: runs of twelve paragraphs after the contents table."""
    raw = gzip.decompress(
        (root / "jargon-text/usr/share/doc/jargon-text/jargon.txt.gz").read_bytes()
    ).decode()
    text = unwrap(tidy(re.sub(r"[\u2500-\u257f]+", "", raw)), 50)
    paras = [p for p in text.split("\n\n") if p.strip()]
    # The contents table is a list of short one-line paragraphs: drop runs of
    # more than four of them.
    kept: list[str] = []
    run: list[str] = []
    for para in paras + ["x" * 61]:
        if len(para) <= 60:
            run.append(para)
            continue
        if len(run) <= 4:
            kept += run
        run = []
        kept.append(para)
    yield from grouped("jargon", kept[:-1], 12)


def read_devil(root: Path) -> Iterator[Doc]:
    """The Devil's Dictionary: runs of four entries, without the headers."""
    raw = gzip.decompress(
        (root / "dict-devil/usr/share/dictd/devil.dict.dz").read_bytes()
    ).decode("latin-1")
    body = raw[raw.index("ABASEMENT, n."):]
    entries = re.split(r"\n(?=[A-Z][A-Z' -]+, [a-z]+\.)", body)
    yield from grouped("devil", [tidy(e).strip("\n") for e in entries], 4)


# ----------------------------------------------------------------- docs


class TextOfHtml(html.parser.HTMLParser):
    """Plain text of a documentation page: paragraphs, headings, <pre>."""

    BLOCK = {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "dt", "dd",
             "ul", "ol", "dl", "table", "tr", "blockquote", "section", "br",
             "hr", "pre", "center"}
    SKIP = {"script", "style", "head", "nav", "svg", "title"}
    SKIP_CLASS = {"nosearch", "navheader", "navfooter", "toc", "searchmenu",
                  "imgcontainer", "fancy_toc", "legalnotice"}
    VOID = {"br", "hr", "img", "input", "meta", "link", "col", "area", "wbr"}

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.line = ""
        self.pre = 0
        self.skip: list[str] = []  # open tags inside a skipped element

    def flush(self) -> None:
        line = re.sub(r"\s+", " ", self.line).strip()
        if line:
            self.parts.append(line)
        self.line = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.skip:
            if tag == self.skip[0]:
                self.skip.append(tag)
            return
        classes = set((dict(attrs).get("class") or "").split())
        if tag not in self.VOID and (tag in self.SKIP or classes & self.SKIP_CLASS):
            self.flush()
            self.skip = [tag]
            return
        if self.pre and tag != "pre":
            if tag == "br":
                self.line += "\n"
            return
        if tag in self.BLOCK:
            self.flush()
        if tag in ("td", "th"):
            self.line += "  "
        if tag == "li":
            self.line = "* "
        if tag == "pre":
            self.pre += 1

    def handle_endtag(self, tag: str) -> None:
        if self.skip:
            if tag == self.skip[0]:
                self.skip.pop()
            return
        if tag == "pre" and self.pre:
            self.pre -= 1
            if self.line.strip():
                self.parts.append(self.line.strip("\n").rstrip())
            self.line = ""
        elif not self.pre and tag in self.BLOCK:
            self.flush()

    def handle_data(self, data: str) -> None:
        if not self.skip:
            self.line += data


def html_text(page: str) -> str:
    """Text of one page; paragraphs are separated by a blank line."""
    parser = TextOfHtml()
    parser.feed(page)
    parser.close()
    parser.flush()
    return "\n\n".join(p for p in parser.parts if p != "*")


def read_html(root: Path, package: str, folder: str, drop: str) -> Iterator[Doc]:
    """Pages below a package's documentation folder, less those matching drop."""
    base = root / package / folder
    for path in sorted(base.rglob("*.html")):
        name = path.relative_to(base).as_posix()
        if re.search(drop, name) or path.is_symlink():
            continue
        yield f"{package}/{name}", html_text(path.read_text("utf-8", "replace"))


def read_python_docs(root: Path) -> Iterator[Doc]:
    """reStructuredText sources of the Python documentation."""
    base = root / "python3.11-doc/usr/share/doc/python3.11/html/_sources"
    for path in sorted(base.rglob("*.rst.txt")):
        name = path.relative_to(base).as_posix()
        if re.search(r"license|changelog|contents|copyright|topics", name):
            continue
        yield f"python3.11-doc/{name}", path.read_text("utf-8", "replace")


# ----------------------------------------------------------------- code

# Files that carry another licence than their package.
OTHER_LICENCE = re.compile(
    r"GPL|General Public|Apache License|apache\.org/licenses|Mozilla Public|"
    r"Creative Commons|All rights reserved", re.I)

# Generated tables, vendored copies and machine-made tests.
CODE_DROP = re.compile(
    r"/encodings/(cp|iso|mac|koi|hp)|pydoc_data/topics|lib2to3/tests/data|"
    r"/_build_utils/|"
    r"locale/|/conf/locale|baseconv\.py|django/utils/ipv6\.py|"
    r"test/(cjkencodings|decimaltestdata|encoded_modules)|"
    r"benchmarks/.*_data|_version\.py|__config__\.py")


def strip_header(text: str) -> str:
    """Drop comment lines at the head of a file when they speak of copyright."""
    lines = text.split("\n")
    at = 0
    while at < len(lines) and (not lines[at].strip() or lines[at].startswith("#")):
        at += 1
    if re.search(r"copyright|licen[cs]e", "\n".join(lines[:at]), re.I):
        lines = lines[at:]
    elif lines and re.match(r"#.*coding[:=]", lines[0]):
        lines = lines[1:]
    return "\n".join(lines)


def looks_generated(text: str) -> bool:
    """True for data tables in source form, by their line and digit statistics."""
    lines = text.split("\n")
    digits = sum(c.isdigit() for c in text)
    ascii_share = sum(c < "\x80" for c in text) / max(1, len(text))
    hexes = len(re.findall(r"\\x|\\u|0x", text))
    return (max(map(len, lines)) > 400 or digits > 0.15 * len(text)
            or ascii_share < 0.98 or hexes > 0.01 * len(text))


def read_code(root: Path, package: str) -> Iterator[Doc]:
    """Python sources of one package."""
    base = root / package / "usr"
    for path in sorted(base.rglob("*.py")):
        name = path.relative_to(base).as_posix()
        if path.is_symlink() or CODE_DROP.search("/" + name):
            continue
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        if OTHER_LICENCE.search(text[:8000]):
            continue
        text = strip_header(text)
        if text.strip() and not looks_generated(text):
            yield f"{package}/{name}", text


# ----------------------------------------------------------------- main


def documents(root: Path, package: str) -> Iterator[Doc]:
    """All documents of one package before filtering."""
    if package == "bible-kjv-text":
        return read_kjv(root)
    if package == "sword-text-web":
        return read_web(root)
    if package == "jargon-text":
        return read_jargon(root)
    if package == "dict-devil":
        return read_devil(root)
    if package == "sqlite3-doc":
        return read_html(root, package, "usr/share/doc/sqlite3",
                         r"crossref|keyword_index|requirements|^th3|sitemap|"
                         r"copyright|releaselog|syntax/")
    if package == "postgresql-doc-15":
        return read_html(root, package, "usr/share/doc/postgresql-doc-15/html",
                         r"bookindex|legalnotice|features-sql|biblio|sql-keywords|"
                         r"errcodes")
    if package == "python3.11-doc":
        return read_python_docs(root)
    return read_code(root, package)


def download(root: Path) -> None:
    """Fetch and unpack every package; packages already unpacked are kept."""
    root.mkdir(parents=True, exist_ok=True)
    for package in sorted({p for ps in SOURCES.values() for p in ps} | set(TOOLS)):
        if (root / package).exists():
            continue
        subprocess.run(["apt-get", "download", "-qq", package], cwd=root, check=True)
        deb = next(root.glob(f"{package}_*.deb"))
        subprocess.run(["dpkg", "-x", deb, root / package], check=True)


def versions(root: Path) -> dict[str, str]:
    """Package name -> version, read from the downloaded archives."""
    out = {}
    for deb in sorted(root.glob("*.deb")):
        shown = subprocess.run(["dpkg-deb", "-W", deb], stdout=subprocess.PIPE, check=True)
        name, version = shown.stdout.decode().split()
        out[name] = version
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--work", type=Path, required=True, help="working directory")
    parser.add_argument("--no-download", action="store_true",
                        help="expect the packages below WORK/packages already")
    args = parser.parse_args()
    root = args.work / "packages"
    if not args.no_download:
        download(root)
    target = args.work / "corpus"
    target.mkdir(parents=True, exist_ok=True)

    stats: dict[str, dict] = {"versions": versions(root), "sources": {}}
    seen: set[bytes] = set()
    for task, packages in SOURCES.items():
        parts: dict[str, list[str]] = {"train": [], "heldout": []}
        for package in packages:
            count = {"train": [0, 0], "heldout": [0, 0]}  # documents, characters
            for key, text in documents(root, package):
                text = tidy(text)
                if not MIN_CHARS <= len(text) <= MAX_CHARS:
                    continue
                digest = hashlib.sha256(re.sub(r"\s+", " ", text).encode()).digest()
                if digest in seen:
                    continue
                seen.add(digest)
                part = "heldout" if heldout(key) else "train"
                parts[part].append(json.dumps(
                    {"source": package, "key": key, "text": text}, ensure_ascii=False))
                count[part][0] += 1
                count[part][1] += len(text)
            stats["sources"][package] = {"task": task, **{
                part: {"documents": c[0], "characters": c[1]} for part, c in count.items()}}
            print(f"{task:6s} {package:26s} train {count['train']} heldout {count['heldout']}",
                  flush=True)
        for part, rows in parts.items():
            (target / f"{task}.{part}.jsonl").write_text("\n".join(rows) + "\n", "utf-8")
    (target / "stats.json").write_text(json.dumps(stats, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
