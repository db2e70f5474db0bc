"""Looks at the HTML report in headless Chromium, at a laptop's and a phone's width, in light and
dark: nothing is wider than the page, nothing is fetched, screenshots are not blank.

check_report_pages.py CUPEL FOLDER [PAGE.html...]: makes reports with the program CUPEL, and leaves
pages and screenshots in FOLDER. Pages given are looked at too.
"""
import html
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from report_records import records  # noqa: E402

WIDTHS = {"laptop": (1440, 900), "phone": (390, 844)}


def fail(message):
    sys.exit(f"check-browser: {message}")


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    fail("no chromium found (scripts/install-deps.sh --ci installs it)")


def run_browser(words):
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-background-networking", "--disable-component-update", "--no-first-run",
             f"--user-data-dir={profile}", "--virtual-time-budget=3000", *words],
            capture_output=True, timeout=120, check=False)
    if done.returncode != 0:
        fail(f"the browser ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode("utf-8", "replace")


# The page stands in a frame of the width to be seen, since a window has a least width. Its policy
# is taken away, so that whatever it would fetch is seen to be tried. Reported for each frame:
# widths, what stands out, what was fetched.
HARNESS = """<!doctype html><meta charset="utf-8"><style>*{{margin:0}}iframe{{border:0;display:block}}</style>
{frames}<pre id="result"></pre><script>
onload = () => {{
  const seen = [];
  for (const frame of document.querySelectorAll('iframe')) {{
    const page = frame.contentDocument, view = frame.contentWindow;
    const width = view.innerWidth, scroller = page.scrollingElement;
    const boxed = e => e.closest('.scroll');
    const out = [...page.body.querySelectorAll('*')].filter(e => !boxed(e) && !e.closest('svg') &&
        e.getBoundingClientRect().right > width + 0.5).map(e => e.tagName + '.' + e.className);
    const cut = [...page.querySelectorAll('svg text')].filter(e => {{
      const box = e.getBoundingClientRect();
      return box.left < -0.5 || box.right > width + 0.5;
    }}).length;
    seen.push({{name: frame.id, width, scrolls: scroller.scrollWidth, out: out.slice(0, 5), cut,
      fetched: view.performance.getEntriesByType('resource').map(e => e.name),
      scripts: page.scripts.length, text: page.body.innerText.length,
      drawn: page.querySelectorAll('svg circle').length,
      named: [...page.querySelectorAll('svg[role=img]')].every(e => e.querySelector('title')
          && e.querySelector('desc') && e.getAttribute('aria-label'))}});
  }}
  document.getElementById('result').textContent = 'SEEN' + JSON.stringify(seen) + 'NEES';
}};
</script>"""


def look(page, folder):
    """What the harness reports, by the name of the width."""
    without_policy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    frames = "".join(
        f'<iframe id="{name}" width="{w}" height="{h}" srcdoc="{html.escape(without_policy)}"></iframe>'
        for name, (w, h) in WIDTHS.items())
    file = folder / "harness.html"
    file.write_text(HARNESS.format(frames=frames), encoding="utf-8")
    dom = run_browser(["--window-size=1600,1000", "--dump-dom", file.as_uri()])
    file.unlink()
    found = re.search(r"SEEN(.*?)NEES</pre>", dom, re.DOTALL)
    if not found:
        fail("the page did not load in its frame")
    return {seen["name"]: seen for seen in json.loads(html.unescape(found.group(1)))}


def problems(seen):
    for name, (width, _) in WIDTHS.items():
        s = seen[name]
        if s["width"] != width:
            yield f"{name}: the frame is {s['width']} wide, not {width}"
        if s["scrolls"] > width or s["out"]:
            yield f"{name}: {s['scrolls']} wide in {width}; {s['out']}"
        if s["cut"]:
            yield f"{name}: {s['cut']} labels of charts are cut"
        if s["fetched"] or s["scripts"]:
            yield f"{name}: fetched {s['fetched']}, {s['scripts']} scripts"
        if not s["named"]:
            yield f"{name}: a chart has no title or description"
        if s["text"] < 500 or not s["drawn"]:
            yield f"{name}: {s['text']} characters, {s['drawn']} points drawn"


ENOUGH_COLOURS = 20


def colours(png):
    """The number of distinct colours of an 8-bit RGB or RGBA image, up to ENOUGH_COLOURS."""
    data = png.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    channels = {2: 3, 6: 4}[kind]
    assert depth == 8
    at, packed = 8, b""
    while at < len(data):
        (size,), name = struct.unpack(">I", data[at:at + 4]), data[at + 4:at + 8]
        packed += data[at + 8:at + 8 + size] if name == b"IDAT" else b""
        at += size + 12
    raw, stride, above, seen = zlib.decompress(packed), width * channels, None, set()
    above = bytearray(stride)
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left = row[i - channels] if i >= channels else 0
            up, corner = above[i], above[i - channels] if i >= channels else 0
            if kind == 1:
                row[i] = (row[i] + left) & 255
            elif kind == 2:
                row[i] = (row[i] + up) & 255
            elif kind == 3:
                row[i] = (row[i] + (left + up) // 2) & 255
            elif kind == 4:
                p = left + up - corner
                best = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))
                row[i] = (row[i] + best[2]) & 255
        seen.update(bytes(row[i:i + 3]) for i in range(0, stride, channels))
        above = row
        if len(seen) >= ENOUGH_COLOURS:
            break
    return len(seen)


def screenshot(page, file, width, height, dark):
    """The top of the page, in a frame of the width."""
    harness = file.with_suffix(".html")
    scheme = "dark" if dark else "light"
    harness.write_text(
        f'<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="{scheme}">'
        "<style>*{margin:0}iframe{border:0;display:block}</style>"
        f'<iframe width="{width}" height="{height}" style="color-scheme:{scheme}" '
        f'srcdoc="{html.escape(page)}"></iframe>', encoding="utf-8")
    run_browser([f"--window-size={max(width, 500)},{height}", f"--screenshot={file}",
                 *(["--blink-settings=preferredColorScheme=0"] if dark else []), harness.as_uri()])
    harness.unlink()


def make_page(cupel, folder):
    """A report with everything in it: long names, repeats, losses, hostile text, history."""
    cells = {
        "deepseek-v4-flash-preview/unified_kv_triton": (120, 3, 0.93, 12, 1),
        "deepseek-v4-flash-preview/triton": (120, 3, 0.93, 12, 2),
        "a-rather-long-name-of-an-organisation-and-a-model-0731-fp8-repacked/triton": (120, 3, 0.80, 14, 3),
        "<script>alert('cell')</script>": (120, 3, 0.93, 0, 4),
    }
    paths = []
    for i, (name, (items, repeats, accuracy, unstable, seed)) in enumerate(cells.items()):
        paths.append(folder / f"cell{i}.jsonl")
        paths[-1].write_text(records(name, items, repeats, accuracy, unstable, seed), encoding="utf-8")
    for night in range(3):
        outputs = [f"--report-json={folder / f'night{night}.json'}"]
        if night == 2:
            outputs += [f"--report-html={folder / 'report.html'}", f"--history={folder}"]
        done = subprocess.run([cupel, "assay", "compare", *map(str, paths), "--margin", "2",
                               "--no-ledger", *outputs], capture_output=True, check=False)
        if done.returncode not in (0, 1, 2):
            fail(done.stderr.decode(errors="replace"))
        report = folder / f"night{night}.json"
        report.write_text(re.sub(r'"created_at": "[^"]*"', f'"created_at": "2026-09-{night + 1:02}T04:00:00Z"',
                                 report.read_text(encoding="utf-8")), encoding="utf-8")
    return folder / "report.html"


def control(folder):
    """The check sees what it is for: a page that is too wide and fetches something."""
    bad = ('<!doctype html><body><div style="width:2000px">wide</div>'
           '<img src="http://127.0.0.1:9/x.png"><script>1</script></body>')
    seen = look(bad, folder)
    text = " ".join(problems(seen))
    for word in ("2008 wide in 390", "2008 wide in 1440", "x.png", "1 scripts", "0 points drawn"):
        if word not in text:
            fail(f"the control page passed for \"{word}\": {text}")


def main():
    if len(sys.argv) < 3:
        fail("usage: check_report_pages.py CUPEL FOLDER [PAGE.html...]")
    folder = pathlib.Path(sys.argv[2]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    control(folder)
    pages = [make_page(sys.argv[1], folder), *map(pathlib.Path, sys.argv[3:])]
    failed = False
    for path in pages:
        page = path.read_text(encoding="utf-8")
        for problem in problems(look(page, folder)):
            print(f"check-browser: {path}: {problem}", file=sys.stderr)
            failed = True
        for name, (width, height) in WIDTHS.items():
            for dark in (False, True):
                file = folder / f"{path.stem}-{name}-{'dark' if dark else 'light'}.png"
                screenshot(page, file, width, height, dark)
                if colours(file) < ENOUGH_COLOURS:
                    print(f"check-browser: {file}: blank", file=sys.stderr)
                    failed = True
    if failed:
        sys.exit(1)
    print(f"check-browser: {len(pages)} page(s) at {len(WIDTHS)} widths: good; screenshots in {folder}")


if __name__ == "__main__":
    main()
