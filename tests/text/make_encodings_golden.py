#!/usr/bin/env python3
"""Writes encodings.golden.jsonl: texts, their ids and the pieces of the pre-tokeniser (run over
the whole text, added tokens included; byte lengths) by Hugging Face tokenizers (pip install
tokenizers==0.23.3), for the bundled tokenizer.json.

    make_encodings_golden.py TOKENIZER_JSON COUNT SEED > encodings.golden.jsonl

The committed file: COUNT 400, SEED 1. Characters are drawn from those that unicodedata knows, so
that a newer Unicode version in either program does not matter.
"""

import json
import random
import sys
import unicodedata

from tokenizers import Tokenizer

PLANES = [(0x20, 0x7E), (0x80, 0x24F), (0x300, 0x36F), (0x370, 0x6FF), (0x700, 0x1FFF),
          (0x2000, 0x2BFF), (0x2E80, 0x312F), (0x3130, 0xA4CF), (0xA4D0, 0xD7FF), (0xE000, 0xFFFF),
          (0x10000, 0x16FFF), (0x1B000, 0x1FAFF), (0x20000, 0x2A6DF), (0xE0000, 0xE01EF)]
SPACES = " \t\n\r\x0b\x0c\x85\xa0\u1680\u180e\u2003\u200b\u2028\u2029\u202f\u3000\ufeff"
DIGITS = "0123456789٣५௧๓²½Ⅷ〇㊿𝟗"
WORDS = ["the", "dollars", "Question", "#### ", "<think>", "</think>", "<｜User｜>", "<｜Assist",
         "｜DSML｜", "<", "=", "...", "中文", "アー・ア゛", "\r\n", "\n\n", "  ", "don't", "e\u0301"]


def character(rng):
    while True:
        low, high = rng.choice(PLANES)
        c = chr(rng.randint(low, high))
        if unicodedata.category(c) not in ("Cn", "Cs"):
            return c


def text(rng):
    out = []
    for _ in range(rng.randint(1, 24)):
        kind = rng.random()
        if kind < 0.25:
            out.append(rng.choice(SPACES))
        elif kind < 0.4:
            out.append(rng.choice(DIGITS))
        elif kind < 0.6:
            out.append(rng.choice(WORDS))
        elif kind < 0.8:
            out.append(chr(rng.randint(0, 0x7F)))
        else:
            out.append(character(rng))
    return "".join(out)


def main():
    tokenizer = Tokenizer.from_file(sys.argv[1])
    rng = random.Random(int(sys.argv[3]))
    for _ in range(int(sys.argv[2])):
        sample = text(rng)
        ids = tokenizer.encode(sample, add_special_tokens=False).ids
        splits = tokenizer.pre_tokenizer.pre_tokenize_str(sample)
        pieces = [len(sample[begin:end].encode()) for _, (begin, end) in splits]
        print(json.dumps({"text": sample, "ids": ids, "pieces": pieces}, separators=(",", ":")))


main()
