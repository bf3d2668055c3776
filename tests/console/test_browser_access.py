"""The login and the Access pages in a real browser, and a page of another site that must not reach the console."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import pytest

from odradek.console.settings import OidcLogin, SaslLogin
from tests.console.browsing import ARGUMENTS, CHROMIUM, faults_of, open_browser, open_page
from tests.console.conftest import running_console
from tests.console.oidc_provider import CLIENT_ID, CLIENT_SECRET, running_provider
from tests.console.secured import MECHANISM, PASSWORDS, SASL, SecuredCluster, secured_cluster, token_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's package chromium on the PATH"),
]


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with running_provider() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def secured(issuer: str) -> Iterator[SecuredCluster]:
    with secured_cluster(**token_properties(issuer)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def address(secured: SecuredCluster) -> Iterator[str]:
    with running_console(secured.address, SASL, login=SaslLogin(MECHANISM)) as console:
        yield console


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with open_page(browser, address) as page:
        yield page


def log_in(page: Page, user: str) -> None:
    page.goto("/login")
    page.fill("input[name=user]", user)
    page.fill("input[name=password]", PASSWORDS[user])
    page.click("button:has-text('Log in')")
    page.wait_for_selector("h1:has-text('Overview')")


def test_users_rules_and_quotas_from_login_to_logout(page: Page, new_name: Callable[[], str]) -> None:
    name = new_name()
    page.goto("/access/rules")
    page.wait_for_url("**/login?next=*")
    page.fill("input[name=user]", "admin")
    page.fill("input[name=password]", PASSWORDS["admin"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/access/rules")
    page.fill("form.form input[name=principal]", f"User:{name}")
    page.select_option("select[name=role]", "producer")
    page.fill("input[name=topic]", name)
    page.click("button:has-text('Add rules')")
    page.wait_for_selector(f"text=Added 3 rules for User:{name}")

    page.click("nav.tabs >> text=Check")
    page.fill("input[name=principal]", f"User:{name}")
    page.select_option("select[name=operation]", "Write")
    page.fill("input[name=name]", name)
    page.click("button:has-text('Check')")
    page.wait_for_selector(f"text=rule: User:{name} may Write on topic {name} from every host")

    page.click("nav.tabs >> text=Users")
    page.fill("form.form input[name=name]", name)
    page.fill("input[name=password]", "one")
    page.fill("input[name=again]", "one")
    page.click("button:has-text('Add user')")
    page.wait_for_selector(f"text=Added user {name}")
    page.fill("[data-search]", name)
    page.wait_for_selector("#users tbody tr:only-child")
    page.click(f"#users a:text-is('{name}')")
    assert page.locator("button.danger").is_disabled()
    page.fill("input[name=confirmation]", name)
    page.click("button.danger")
    page.wait_for_selector(f"text=Removed user {name}")

    page.click("nav.tabs >> text=Quotas")
    page.fill("input[name=user]", name)
    page.fill("input[name=limit]", "1048576")
    page.click("button:has-text('Set quota')")
    page.wait_for_selector(f"text=user {name}: producer_byte_rate = 1,048,576 bytes/s")

    page.goto(f"/access/rules?principal=User:{name}")
    page.wait_for_selector("#rules tbody tr:nth-child(3):last-child")
    for box in page.locator("#rules input[name=rule]").all():
        box.check()
    page.click("button:has-text('Remove selected')")
    page.click("button:has-text('Remove 3 rules')")
    page.wait_for_selector("text=Removed 3 rules")

    page.click("button:has-text('Log out')")
    page.wait_for_selector("text=You are logged out.")
    page.go_back()
    page.reload()
    page.wait_for_url("**/login*")


def test_a_user_sees_what_the_own_rules_allow(page: Page) -> None:
    log_in(page, "ann")
    page.click("nav >> text=Topics")
    page.wait_for_selector("text=ann-orders")
    assert "ben-orders" not in page.content()
    page.click("nav >> text=Access")
    page.wait_for_selector("text=not allowed: needs Describe on the cluster")


def test_a_login_with_a_provider(browser: Browser, secured: SecuredCluster, issuer: str) -> None:
    login = OidcLogin(issuer, CLIENT_ID, CLIENT_SECRET)
    with (
        running_console(secured.address, {"security.protocol": "SASL_PLAINTEXT"}, login=login) as address,
        open_page(browser, address) as page,
    ):
        page.goto("/topics")
        page.click(f"text=Log in with {urlsplit(issuer).netloc}")
        page.wait_for_url("**/topics")
        page.wait_for_selector("text=ann-orders")
        assert not faults_of(page, "topics")


@pytest.mark.soak
def test_pages_have_no_serious_accessibility_fault(page: Page) -> None:
    faults: list[str] = []
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.goto("/login")
        faults += faults_of(page, f"{theme} /login")
    log_in(page, "admin")
    check = "/access/check?principal=User:ann&operation=Read&kind=topic&name=ann-orders"
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        for path in ("/access", "/access/rules", "/access/quotas", "/access/user?name=ann", "/access/check", check):
            page.goto(path)
            faults += faults_of(page, f"{theme} {path}")
    assert not faults, "\n".join(faults)


def test_a_phone_shows_pages_without_scrolling_sideways(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/login")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    log_in(page, "admin")
    for path in ("/access", "/access/rules", "/access/quotas", "/access/check", "/access/user?name=ann"):
        page.goto(path)
        wide = "[...document.querySelectorAll('body *')].filter(each => each.getBoundingClientRect().right > 391"
        wide += " && !each.closest('.scroll, nav')).map(each => each.outerHTML.slice(0, 80))"
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, f"{path} is {width} pixels wide: {page.evaluate(wide)}"


ATTACK = """<!doctype html><title>evil</title><body>
<iframe id="frame" src="{address}topics"></iframe>
<form id="form" method="post" action="{address}new-topic"><input name="name" value="forged"></form>
<a id="link" href="{address}new-topic">a link to the console</a>
<script src="/attack.js"></script>"""


@pytest.fixture
def evil() -> Iterator[Callable[[str], str]]:
    """A site of another host: `localhost` is another site than 127.0.0.1. Returns its address."""
    pages: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path, b"")
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def serve(target: str) -> str:
        pages["/"] = ATTACK.format(address=target).encode()
        return f"http://localhost:{server.server_port}/"

    yield serve
    server.shutdown()
    server.server_close()


def test_a_page_of_another_site_cannot_read_frame_or_change_the_console(
    browser: Browser, console_address: str, evil: Callable[[str], str]
) -> None:
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(f"{console_address}topics")  # a session exists in this browser
        page.goto(evil(console_address))
        reading = f"fetch('{console_address}topics', {{credentials: 'include'}}).then(r => r.text()).catch(() => 'no')"
        assert page.evaluate(reading) == "no"
        assert page.evaluate(reading.replace("'include'", "'include', mode: 'no-cors'")) in ("", "no")
        frame = page.frames[1]
        assert "Topics" not in frame.content()
        page.evaluate("document.getElementById('form').submit()")
        page.wait_for_selector("text=was sent by another")
    finally:
        context.close()


def test_a_name_that_resolves_to_this_machine_is_refused(browser: Browser, console_address: str) -> None:
    """DNS rebinding: the browser believes that evil.example is the console, and sends its name."""
    port = urlsplit(console_address).port
    arguments = [*ARGUMENTS, "--host-resolver-rules=MAP evil.example 127.0.0.1"]
    rebound = browser.browser_type.launch(executable_path=CHROMIUM, args=arguments)
    try:
        page = rebound.new_page()
        answer = page.goto(f"http://evil.example:{port}/topics")
        assert answer is not None
        assert answer.status == 403
        assert "is not this console's" in page.content()
    finally:
        rebound.close()


def test_a_form_that_was_opened_by_a_link_of_another_site_works(
    browser: Browser, console_address: str, evil: Callable[[str], str], new_name: Callable[[], str]
) -> None:
    context = browser.new_context()
    try:
        form = context.new_page()
        form.goto(f"{console_address}new-topic")
        other = context.new_page()
        other.goto(evil(console_address))
        other.click("#link")
        other.wait_for_selector("h1:has-text('Create topic')")
        for page in (form, other):  # the link has not replaced the session of the form that was open
            name = new_name()
            page.fill("input[name=name]", name)
            page.click("button:has-text('Create')")
            page.wait_for_selector(f"text=Created topic {name}")
    finally:
        context.close()
