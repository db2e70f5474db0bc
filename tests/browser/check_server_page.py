"""Looks at the page of `cupel serve` in headless Chromium: a question is asked and answered, tokens
are shaded, reasoning is folded, the identity is told, nothing comes from elsewhere.

check_server_page.py CUPEL FOLDER: leaves screenshots in FOLDER.
"""
import http.server
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_report_pages import ENOUGH_COLOURS, colours, fail, run_browser  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUESTION = "Which hats does Ken have, and why?"


class Whole(http.server.BaseHTTPRequestHandler):
    """Hands the server's replies on in one piece: while the browser waits for a reply its virtual
    time stands still, but not between the pieces of one."""
    origin = ""

    def relay(self, body):
        reply = urllib.request.urlopen(urllib.request.Request(
            self.origin + self.path.split("?")[0], body), timeout=60)
        data = reply.read()
        self.send_response(reply.status)
        for name in ("Content-Type", "Content-Security-Policy"):
            if reply.headers[name]:
                self.send_header(name, reply.headers[name])
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.relay(None)

    def do_POST(self):
        self.relay(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, *words):
        pass


def look(origin, folder):
    Whole.origin = origin
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Whole)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{proxy.server_port}"
    source = urllib.request.urlopen(url + "/", timeout=10).read().decode()
    if re.search(r"""(src|href)\s*=|@import|url\(|https?://""", source):
        fail("the page names something from elsewhere")
    for thinking in (False, True):
        page = f"{url}/?ask={urllib.parse.quote(QUESTION)}" + ("&thinking" if thinking else "")
        dom = run_browser(["--window-size=1440,900", "--dump-dom", page])
        dom = re.sub(r"<script>.*</script>", "", dom, flags=re.DOTALL)
        if "ended: " not in dom:
            fail(f"no answer in the page: {dom[-2000:]}")
        if not re.search(r'<span[^>]*title="margin [0-9]', dom) or "background: rgb(" not in dom:
            fail("no token is shaded")
        if ("<details><summary>reasoning</summary>" in dom) != thinking:
            fail(f"reasoning folded: {not thinking}, wanted {thinking}")
        for told in ("tiny-v4-0731", "unified", "fingerprint", "tokenizer="):
            if told not in dom:
                fail(f"the identity does not tell {told}")
        for name, size in (("laptop", "1440,900"), ("phone", "500,844")):
            file = folder / f"server-{'thinking' if thinking else 'chat'}-{name}.png"
            run_browser([f"--window-size={size}", f"--screenshot={file}", page])
            if colours(file) < ENOUGH_COLOURS:
                fail(f"{file}: blank")


def main():
    folder = pathlib.Path(sys.argv[2]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    server = subprocess.Popen([sys.argv[1], "serve", "--model", ROOT / "models" / "tiny-v4-0731",
                               "--port", "0", "--no-access-log"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    try:
        found = re.search(rb" at (http://\S+)", server.stdout.readline())
        if not found:
            fail("the server did not start")
        look(found.group(1).decode(), folder)
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(60)
    if code != 0:
        fail(f"the server ended with {code}")
    print(f"check-browser: the page of the server: good; screenshots in {folder}")


if __name__ == "__main__":
    main()
