#!/usr/bin/env python3
"""Peak resident memory of a run against what it is allowed: weights, --max-cache-bytes, a constant.

  bench/peak_memory.py CUPEL FOLDER [PROMPT_TOKENS...]

Runs `cupel logits` once for one token (loading alone) and once for each prompt length, with a small and a
large cache, and prints the peak, mapped files included, less the bytes of the weights.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MIB = 1 << 20


def peak(cupel, folder, tokens, cache, weights):
    with tempfile.TemporaryDirectory() as scratch:
        ids = pathlib.Path(scratch, "ids.jsonl")
        ids.write_text(json.dumps({"prompt_ids": [7 + i * 31 % 700 for i in range(tokens)]}) + "\n")
        command = [cupel, "logits", "--model", folder, "--ids", ids, "--out", pathlib.Path(scratch, "out"),
                   "--max-cache-bytes", str(cache), "--weights", weights]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"{command[1]} ended with status {status}")
        return usage.ru_maxrss * 1024


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    cupel, folder = sys.argv[1:3]
    lengths = [int(a) for a in sys.argv[3:]] or [1024]
    stored = sum(f.stat().st_size for f in pathlib.Path(folder).glob("*.safetensors"))
    print(f"weights: {stored / MIB:.0f} MiB in the shards")
    for weights in ("repack", "map"):
        loading = peak(cupel, folder, 1, 64 * MIB, weights)
        print(f"{weights:6} loading and one token: {loading / MIB:.0f} MiB, {100 * loading / stored:.1f} % of the shards")
        for tokens in lengths:
            for cache in (16 * MIB, 1024 * MIB):
                used = peak(cupel, folder, tokens, cache, weights)
                print(f"{weights:6} {tokens} tokens, cache of {cache // MIB} MiB: {used / MIB:.0f} MiB, "
                      f"{(used - stored) / MIB:.0f} MiB beyond the shards")


if __name__ == "__main__":
    main()
