"""F13: the page of the API's documentation is whole, safe, and reads without any network."""

from __future__ import annotations

import base64
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.functions.function_stores import Place, in_memory, run
from tests.functions.live import live

from treadle.functions.http.docs import docs_page

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
LOADING = {"script", "link", "img", "iframe", "object", "embed", "audio", "video", "source", "form", "base", "svg", "math"}
HOSTILE = "<script>alert(1)</script><b onclick=x>\"'`&amp;</style></code>{{ 7*7 }}"
CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine to look at the page with")


class Page(HTMLParser):
    """The page, read strictly: what is opened is closed, in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.style = ""
        self.ids: Counter[str] = Counter()
        self.declaration = ""
        self.within: dict[str, str] = {}  # the text of each element that has an id
        self._inside: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == [], self.open

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def handle_decl(self, decl: str) -> None:
        assert not self.elements
        self.declaration = decl

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag == "p":
            assert "p" not in self.open, "a paragraph within a paragraph"
        if tag not in VOID:
            self.open.append(tag)
            identity = attributes.get("id")
            self._inside.append(identity or "")
            if identity:
                self.ids[identity] += 1
                self.within[identity] = ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open, (tag, self.getpos())
        assert self.open.pop() == tag, (tag, self.getpos())
        self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
            return
        assert self.open or not data.strip(), data
        self.texts.append(data)
        for identity in self._inside:
            if identity:
                self.within[identity] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment is left in the page: {data}")


@pytest.fixture(scope="module")
def served() -> tuple[Any, str, str]:
    """The document, the page and its policy, from a running service."""
    found = []

    async def fetch(here: Place) -> None:
        async with live(here, role="api") as service:
            response = await service.http.get("/docs")
            assert response.status_code == 200
            assert response.headers["content-type"] == "text/html; charset=utf-8"
            assert response.headers["x-content-type-options"] == "nosniff"
            document = (await service.http.get("/openapi.json")).json()
            found.append((document, response.text, response.headers["content-security-policy"]))

    run("memory", fetch)
    return found[0]


@in_memory
async def test_it_wants_no_key_and_has_a_head(place: Place) -> None:
    async with live(place, role="api") as service:
        response = await service.http.head("/docs")
        whole = await service.http.get("/docs")
        assert (response.status_code, response.content) == (200, b"")
        assert int(response.headers["content-length"]) == len(whole.content)


def test_it_is_well_formed(served: tuple[Any, str, str]) -> None:
    _, html, _ = served
    assert html.startswith('<!doctype html>\n<html lang="en">')
    page = Page(html)
    assert page.declaration == "doctype html"
    assert {"charset": "utf-8"} in page.all("meta")
    assert [tag for tag, _ in page.elements].count("h1") == 1
    assert max(page.ids.values()) == 1, page.ids.most_common(3)
    for link in page.all("a"):
        href = link["href"] or ""
        assert href == "openapi.json" or (href.startswith("#") and href[1:] in page.ids), href
    level = 0
    for tag, _ in page.elements:
        if re.fullmatch("h[1-6]", tag):
            assert int(tag[1]) <= level + 1, "a level of headings is left out"
            level = int(tag[1])
    for header in page.all("th"):
        assert header["scope"] in ("col", "row")
    assert not re.search(r"Undefined|\bNone\b|{{|{%|}}(?!})", page.text.replace("…}}", "")), "the template shows through"


def test_it_loads_nothing(served: tuple[Any, str, str]) -> None:
    _, html, policy = served
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag not in LOADING, tag
        for name, value in attributes.items():
            assert name not in ("src", "srcset", "style", "action", "background", "ping") and not name.startswith("on"), (
                tag,
                name,
            )
            assert ("//" not in (value or "") and ":" not in (value or "")) or name in ("content", "title"), (tag, name, value)
    assert not re.search(r"url\(|@import|image-set|expression|//", page.style)
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert [tag for tag, _ in page.elements].count("style") == 1
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{digest}'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }


def test_everything_is_on_it(served: tuple[Any, str, str]) -> None:
    document, html, _ = served
    page = Page(html)
    for path, methods in document["paths"].items():
        shown_at = {}
        for method, operation in methods.items():
            titled = [one for one in page.all("b") if one.get("title") == operation["operationId"]]
            assert [one["class"] for one in titled] == [f"method {method}"], operation["operationId"]
            shown_at[method] = operation["operationId"] if operation["operationId"] in page.ids else None
        first = next(identity for identity in shown_at.values() if identity)
        for method, operation in methods.items():
            text = page.within[shown_at[method] or first]
            assert method.upper() in text and path in text
            for parameter in operation.get("parameters", ()):
                assert parameter["name"] in text and plain(parameter["description"]) in text, (path, parameter["name"])
            for status, response in operation["responses"].items():
                assert status in text, (path, method, status)
                assert "$ref" in response or plain(response["description"]) in text, (path, status)
            assert plain(operation.get("description", "")).split("\n\n")[0] in text
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            if "$ref" in body:
                for name in document["components"]["schemas"][body["$ref"].rpartition("/")[2]]["properties"]:
                    assert name in text, (path, name)
    for name, schema in document["components"]["schemas"].items():
        text = page.within[f"shape-{name}"]
        assert plain(schema["description"]) in text
        for field, of in schema["properties"].items():
            assert field in text and plain(of["description"]) in text, (name, field)
    for response in document["components"]["responses"].values():
        assert plain(response["description"]) in page.within["failures"]
        assert response["content"]["application/json"]["example"]["error"]["code"] in page.within["failures"]
    for tag in document["tags"]:
        assert tag["name"] in page.text and plain(tag["description"]) in page.text


def plain(text: str) -> str:
    return text.replace("`", "")


def test_every_text_is_escaped(served: tuple[Any, str, str]) -> None:
    """Whatever stands in a document: it is text on the page, and nothing else."""
    document, clean, _ = served
    html = bytes(docs_page(poisoned(document)).body).decode()
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag not in LOADING
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
    free = {
        "p",
        "code",
        "wbr",
        "a",
    }  # paragraphs, code and paths are marked up, and lists of `data` linked, by what the texts are
    assert {tag: count for tag, count in tags(page).items() if tag not in free} == {
        tag: count for tag, count in tags(Page(clean)).items() if tag not in free
    }
    assert page.text.count("<script>alert(1)</script>") > 300
    assert "49" not in page.text.replace("4964", "")
    assert page.style == Page(clean).style


def tags(page: Page) -> Counter[str]:
    return Counter(tag for tag, _ in page.elements)


def poisoned(value: Any, key: str = "") -> Any:
    """The document with something hostile behind each text, and in the names of fields and paths."""
    match value:
        case dict():
            named = key in ("properties", "paths")
            return {(name + HOSTILE if named else name): poisoned(of, "" if named else name) for name, of in value.items()}
        case list():
            return [poisoned(of, key) for of in value]
        case str() if key not in ("$ref", "in", "type"):
            return value + HOSTILE
        case _:
            return value


# --- in a browser


class Site(http.server.ThreadingHTTPServer):
    """Serves some pages, and remembers what it was asked for."""

    daemon_threads = False
    block_on_close = True

    def __init__(self, pages: dict[str, tuple[str, dict[str, str]]]) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.pages = pages
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answer(http.server.BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        html, headers = self.server.pages.get(self.path, ("", {}))
        self.send_response(200 if html else 404)
        for name, value in {"content-type": "text/html; charset=utf-8", "connection": "close", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(html.encode())

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def site(pages: dict[str, tuple[str, dict[str, str]]]) -> Iterator[Site]:
    with Site(pages) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def chromium(folder: Path, *options: str) -> tuple[str, str]:
    """What it printed, and what it logged; no other host than this machine can be resolved."""
    assert CHROMIUM is not None
    command = [
        CHROMIUM,
        "--headless",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        f"--user-data-dir={folder}/profile",
    ]
    command += [
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--enable-logging=stderr",
        "--disable-dev-shm-usage",
    ]
    if os.geteuid() == 0:
        command.append("--no-sandbox")
    done = subprocess.run([*command, *options], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


@browser
@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_browser_shows_it_under_its_own_policy(served: tuple[Any, str, str], tmp_path: Path, dark: bool) -> None:
    from matplotlib.image import imread

    _, html, policy = served
    shot = tmp_path / "docs.png"
    with site({"/docs": (html, {"content-security-policy": policy})}) as server:
        mode = ["--blink-settings=preferredColorScheme=0"] if dark else []
        _, logged = chromium(tmp_path, "--window-size=1280,900", f"--screenshot={shot}", *mode, f"{server.url}/docs")
        assert set(server.asked) <= {"/docs", "/favicon.ico"}, server.asked
    assert not re.search(r"CONSOLE|Refused|violat", logged), logged
    pixels = (imread(shot)[:, :, :3] * 255).round().astype(int)
    assert {tuple(pixel) for pixel in pixels[1]} >= {(11, 95, 99)}, "the style was not applied"
    assert bool(pixels[700:, 640:].mean() < 80) is dark
    assert len({tuple(pixel) for row in pixels[::7] for pixel in row[::7]}) > 10, "there is nothing to see"


@browser
@pytest.mark.slow
def test_it_fits_every_width(served: tuple[Any, str, str], tmp_path: Path) -> None:
    """From a small phone to a wide screen, nothing sticks out at the side, and no text is too small to read."""
    _, html, _ = served
    widths = (320, 360, 500, 768, 992, 1280, 1344, 1920)
    frames = "".join(f'<iframe src="/docs" width="{width}" height="800"></iframe>' for width in widths)
    script = """
    onload = () => { document.title = "seen:" + [...document.querySelectorAll("iframe")].map(frame => {
        const page = frame.contentDocument, sizes = [...page.querySelectorAll("body *")].filter(one => one.innerText)
            .map(one => parseFloat(frame.contentWindow.getComputedStyle(one).fontSize));
        return [frame.width, page.documentElement.scrollWidth, page.body.scrollWidth, Math.min(...sizes)].join(",");
    }).join(" ") + ":"; }"""
    with site({"/docs": (html, {}), "/wrap": (f"<title></title>{frames}<script>{script}</script>", {})}) as server:
        printed, _ = chromium(tmp_path, "--virtual-time-budget=20000", "--dump-dom", f"{server.url}/wrap")
    seen = re.search("seen:(.*?):", printed)
    assert seen, printed[:2000]
    rows = [tuple(map(float, row.split(","))) for row in seen[1].split(" ")]
    assert len(rows) == len(widths)
    for width, whole, body, smallest in rows:
        assert whole <= width and body <= width, (width, whole, body)
        assert smallest >= 10.5, smallest
