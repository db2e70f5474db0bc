"""Records as cupel writes them, drawn with a fixed seed: cells with run noise, a loss, and answers
that hold what a page must not trip over."""
import json
import random

HOSTILE = [
    "</script><script>alert(1)</script>", "<img src=http://127.0.0.1:9/x onerror=alert(1)>",
    "\x00\x01\x1b[31m\x7f\u0085", "\u202eright to left\u2066", "e\u0301\u0302 \U0001f9ea 中文 عربى",
    "`````\n```\n| a | b |\n</details>", "&amp;&#60;", "]]>", "x" * 3000, "\ufffe\uffff\ufffd",
]


def answer(rng, value, hostile):
    steps = [f"{rng.randint(2, 99)} * {rng.randint(2, 99)} = {rng.randint(100, 9999)}."
             for _ in range(rng.randint(3, 12))]
    text = " " + " ".join(steps)
    if hostile:
        text += " " + rng.choice(HOSTILE)
    return f"{text}\n#### {value}\n"


def records(name, items, repeats, accuracy, unstable, seed):
    """Lines of one cell: `unstable` items are right in every other run by chance."""
    own = random.Random(seed)
    lines = []
    for item in range(items):
        shared = random.Random(item)  # the same text in all cells until they part
        gold = shared.randint(10, 9000)
        hostile = item % 3 == 0
        sure = own.random() < accuracy
        for repeat in range(repeats):
            correct = own.random() < 0.5 if item < unstable else sure
            value = gold if correct else gold + own.choice([-100, -1, 1, 10])
            text = answer(random.Random(item), value, hostile)
            ids = list(text.encode("utf-8", "replace"))
            step = own.choice([len(ids) - 3, 5])
            lines.append(json.dumps({
                "task": "wordmath", "item": item, "repeat": repeat, "prompt_hash": f"{item:032x}",
                "output": text, "output_ids": ids, "extracted": value, "gold": gold,
                "correct": correct, "correct_strict": correct, "invalid": False,
                "stop_reason": "stop", "prompt_tokens": 700, "completion_tokens": len(ids),
                "min_margin": own.choice([0.02, 0.4, 3.5]), "min_margin_step": step,
                "queue_seconds": 0.1, "first_token_seconds": 0.2, "total_seconds": 1.5,
                "cell": name, "backend": name.rsplit("/", 1)[-1],
                "settings": "shots=8 bos=1 max_new_tokens=512 temperature=0",
                "build": "cupel 0.1.0 test", "model": "870222ff3bd5da1616846ebc7b15eb15",
                "launch": "launch-7", "retries": 0}))
    return "\n".join(lines) + "\n"
