"""Real clients against `cupel serve`: their outputs are the engine's own.

check_clients.py CUPEL FOLDER: starts a server on a free port of 127.0.0.1 over a bundled
checkpoint, asks it with the openai package, with lm-eval (local-completions and
local-chat-completions, 50 wordmath items) and as SGLang's evaluation asks /generate, and compares
with `cupel eval` and `cupel generate` in a process of their own.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import openai
import requests

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "tiny-v4-0731"
ITEMS = 50
STOPS = ["Question", "Assistant:", "<|separator|>"]
QUESTION = "Ivy has 5 apples. Ivy buys 3 more apples. How many apples does Ivy have now?"


def check(holds, what, *shown):
    if not holds:
        sys.exit(f"check-clients: FAILED: {what}: " + " / ".join(map(str, shown)))
    print(f"check-clients: {what}: good", flush=True)


def start_server(cupel, folder):
    log = open(folder / "server.log", "wb")
    server = subprocess.Popen([cupel, "serve", "--model", MODEL, "--port", "0"],
                              stdout=subprocess.PIPE, stderr=log)
    line = server.stdout.readline().decode()
    found = re.search(r" at (http://\S+)", line)
    if not found:
        sys.exit(f"check-clients: the server did not start: {line}")
    return server, found.group(1)


def chat_prompt(question):
    return f"<｜begin▁of▁sentence｜><｜User｜>{question}<｜Assistant｜></think>"


def engine_text(cupel, prompt, tokens, *flags):
    done = subprocess.run([cupel, "generate", "--model", MODEL, "--prompt", prompt, "--no-bos",
                           "--max-new-tokens", str(tokens), *flags],
                          capture_output=True, check=True)
    return done.stdout.decode(errors="replace")[:-1]


def wordmath_rows(cupel, folder):
    """Prompts, and the texts of the engine's own evaluation."""
    records = folder / "records.jsonl"
    subprocess.run([cupel, "eval", "wordmath", "--model", MODEL, "--limit", str(ITEMS), "--records",
                    records], check=True, capture_output=True)
    texts = {row["item"]: row["output"] for row in map(json.loads, records.read_text().splitlines())
             if "item" in row}
    data = ROOT / "data" / "wordmath"
    shots = "".join(f"Question: {s['question']}\nAnswer: {s['answer']}\n\n" for s in
                    map(json.loads, (data / "shots.jsonl").read_text().splitlines()[:8]))
    items = [json.loads(line) for line in (data / "test.jsonl").read_text().splitlines()[:ITEMS]]
    return [{"id": i, "text": texts[i],
             "prompt": f"<｜begin▁of▁sentence｜>{shots}Question: {item['question']}\nAnswer:"}
            for i, item in enumerate(items)]


def check_openai(cupel, url, folder):
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    prompt = f"Question: {QUESTION}\nAnswer:"
    own = engine_text(cupel, prompt, 24)
    reply = client.completions.create(model=model, prompt=prompt, max_tokens=24, temperature=0)
    check(reply.choices[0].text == own, "openai completions", reply.choices[0].text, own)
    pieces = client.completions.create(model=model, prompt=prompt, max_tokens=24, temperature=0,
                                       stream=True, stream_options={"include_usage": True})
    events = list(pieces)
    text = "".join(e.choices[0].text for e in events if e.choices)
    check(text == own and events[-1].usage == reply.usage.model_copy(
        update={"prompt_tokens_details": events[-1].usage.prompt_tokens_details}),
        "openai completions, streamed", text, events[-1].usage)

    ask = [{"role": "user", "content": QUESTION}]
    own = engine_text(cupel, chat_prompt(QUESTION), 64)
    reply = client.chat.completions.create(model=model, messages=ask, max_tokens=64, temperature=0,
                                           logprobs=True, top_logprobs=2)
    check(reply.choices[0].message.content == own, "openai chat", reply.choices[0].message.content, own)
    check(len(reply.choices[0].logprobs.content) == reply.usage.completion_tokens, "openai chat logprobs")
    stream = client.chat.completions.create(model=model, messages=ask, max_tokens=64, temperature=0,
                                            stream=True)
    text = "".join(e.choices[0].delta.content or "" for e in stream if e.choices)
    check(text == own, "openai chat, streamed", text, own)

    tool = {"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "boolean"}},
        "required": ["city", "days"]}}}
    reply = client.chat.completions.create(model=model, messages=ask, tools=[tool], temperature=1, seed=4,
                                           tool_choice="required", max_tokens=400,
                                           parallel_tool_calls=False)
    call = reply.choices[0].message.tool_calls[0].function
    arguments = json.loads(call.arguments)
    check(call.name == "weather" and arguments["city"] in ("Rome", "Oslo"), "openai tools", call)
    stream = client.chat.completions.create(model=model, messages=ask, tools=[tool], temperature=1, seed=4,
                                            tool_choice="required", max_tokens=400, stream=True,
                                            parallel_tool_calls=False)
    parts = [c for e in stream if e.choices for c in e.choices[0].delta.tool_calls or []]
    check("".join(p.function.arguments or "" for p in parts) == call.arguments, "openai tools, streamed")

    schema = {"type": "object", "properties": {"total": {"type": "integer", "minimum": 0, "maximum": 99}},
              "required": ["total"], "additionalProperties": False}
    reply = client.chat.completions.create(
        model=model, messages=ask, max_tokens=60, temperature=1, seed=1,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})
    content = reply.choices[0].message.content
    (folder / "schema.json").write_text(json.dumps(schema))
    own = engine_text(cupel, chat_prompt(QUESTION), 60, "--temperature", "1", "--seed", "1",
                      "--json-schema", str(folder / "schema.json"))
    check(0 <= json.loads(content)["total"] <= 99 and content == own, "openai json_schema", content, own)
    try:
        client.completions.create(model="another", prompt="a")
        check(False, "openai errors")
    except openai.NotFoundError as error:
        check("another" in str(error), "openai errors", error)


def check_native(url, rows):
    """SGLang's few-shot evaluation: everything at once, one thread each."""
    def ask(row):
        reply = requests.post(url + "/generate", timeout=300, json={
            "text": row["prompt"],
            "sampling_params": {"max_new_tokens": 512, "temperature": 0,
                                "stop": STOPS}})
        return reply.json()["text"]
    with concurrent.futures.ThreadPoolExecutor(len(rows)) as pool:
        texts = list(pool.map(ask, rows))
    different = [row["id"] for row, text in zip(rows, texts) if row["text"] != text]
    check(not different, f"/generate, {len(rows)} wordmath items", different)
    info = requests.get(url + "/server_info", timeout=10).json()
    check(info["internal_states"][0]["last_gen_throughput"] > 0, "/server_info")


def engine_chat_texts(cupel, rows):
    """What the engine itself answers to the items as chats."""
    def answer(row):
        stops = [flag for stop in STOPS for flag in ("--stop", stop)]
        return engine_text(cupel, chat_prompt(row["prompt"]), 512, "--threads", "1", *stops)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(answer, rows))


def check_lm_eval(cupel, url, rows, folder):
    (folder / "task").mkdir()
    data = folder / "task" / "items.jsonl"
    data.write_text("".join(json.dumps({"prompt": r["prompt"], "answer": r["text"]}) + "\n" for r in rows))
    (folder / "task" / "wordmath.yaml").write_text(f"""task: wordmath
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: {json.dumps(STOPS)}, max_gen_toks: 512, temperature: 0}}
metric_list: [{{metric: exact_match}}]
""")
    for name, path in (("local-completions", "completions"), ("local-chat-completions", "chat/completions")):
        out = folder / name
        chat = ["--apply_chat_template"] if "chat" in name else []
        subprocess.run([sys.executable, "-m", "lm_eval", "run", "--model", name, "--model_args",
                        f"model=tiny-v4-0731,base_url={url}/v1/{path},num_concurrent=8,"
                        "tokenizer_backend=None,tokenized_requests=False",
                        "--tasks", "wordmath", "--include_path", folder / "task", "--log_samples",
                        "--output_path", out, *chat], check=True,
                       env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"},
                       stdout=open(folder / f"{name}.log", "wb"), stderr=subprocess.STDOUT)
        lines = next(out.rglob("samples_*.jsonl")).read_text().splitlines()
        samples = [json.loads(line) for line in lines]
        check(len(samples) == len(rows), f"lm-eval {name}: {len(rows)} items", len(samples))
        own = engine_chat_texts(cupel, rows) if chat else [row["text"] for row in rows]
        different = [s["doc_id"] for s in samples if s["resps"][0][0] != own[s["doc_id"]]]
        check(not different, f"lm-eval {name}: outputs equal the engine's", different)


def main():
    cupel, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    server, url = start_server(cupel, folder)
    try:
        rows = wordmath_rows(cupel, folder)
        check_openai(cupel, url, folder)
        check_native(url, rows)
        check_lm_eval(cupel, url, rows, folder)
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(60)
    check(code == 0, "SIGTERM: exit code 0", code)
    print("check-clients: all good")


if __name__ == "__main__":
    main()
