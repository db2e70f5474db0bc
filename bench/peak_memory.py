#!/usr/bin/env python3
"""Peak resident memory of runs against what they are allowed: weights, --max-cache-bytes, a constant.

  bench/peak_memory.py CUPEL FOLDER

Runs `cupel logits` on a checkpoint (`cupel make-random`): for one token (loading alone), and for prompts of 1,024 tokens
with a cache that holds hardly more than one of them. Prints the peak, mapped files included, less the bytes of the
shards; docs/engine.md bounds that by --max-cache-bytes and a constant.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MIB = 1 << 20
# Name, prompts, tokens of each, --max-cache-bytes.
RUNS = [
    ("loading and one token", 1, 1, 64 * MIB),
    ("3 prompts of 1024 tokens", 3, 1024, 3 * MIB // 2),
]


def peak(cupel, folder, prompts, tokens, cache, weights):
    with tempfile.TemporaryDirectory() as scratch:
        ids = pathlib.Path(scratch, "ids.jsonl")
        lines = [[7 + (i * 31 + p * 97 + i * p) % 700 for i in range(tokens)] for p in range(prompts)]
        ids.write_text("".join(json.dumps({"prompt_ids": line}) + "\n" for line in lines))
        command = [cupel, "logits", "--model", folder, "--ids", ids, "--out", pathlib.Path(scratch, "out"),
                   "--max-cache-bytes", str(cache), "--weights", weights]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"{command[1]} ended with status {status}")
        return usage.ru_maxrss * 1024


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    cupel, folder = sys.argv[1:3]
    stored = sum(f.stat().st_size for f in pathlib.Path(folder).glob("*.safetensors"))
    print(f"weights: {stored / MIB:.0f} MiB in the shards")
    for weights in ("repack", "map"):
        for name, prompts, tokens, cache in RUNS:
            used = peak(cupel, folder, prompts, tokens, cache, weights)
            print(f"{weights:6} {name}, --max-cache-bytes {cache / MIB:g} MiB: {used / MIB:.0f} MiB, "
                  f"{(used - stored) / MIB:.0f} MiB beyond the shards", flush=True)


if __name__ == "__main__":
    main()
