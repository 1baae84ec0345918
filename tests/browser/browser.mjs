// What the tests of pages share. Each is run as: node TEST.mjs SPECDEC FOLDER, with node_modules in FOLDER.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";

const skipped = 77;
const [specdec, folder] = process.argv.slice(2);

function chromiumPath() {
  for (const place of (process.env.PATH || "").split(delimiter)) {
    const path = join(place, "chromium");
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not there.
    }
  }
  console.log("skipped: chromium is not on PATH (Debian package chromium; scripts/install_packages report)");
  return process.exit(skipped);
}

export function run(...words) {
  return execFileSync(specdec, words, { encoding: "utf8", maxBuffer: 1 << 26 });
}

/** The processor time in seconds that the program and all that it started took, other processes notwithstanding. */
export function processorSeconds(...words) {
  const { status, stderr } = spawnSync("bash", ["-c", 'TIMEFORMAT="%U %S"; time "$@"', "bash", specdec, ...words],
    { encoding: "utf8", stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, LC_ALL: "C" } });
  assert.equal(status, 0, stderr);
  return stderr.trim().split("\n").pop().split(" ").map(Number).reduce((sum, seconds) => sum + seconds);
}

/** Calls `test(browser, scratch)` with a browser and a folder of its own. */
export async function withBrowser(test) {
  const executablePath = chromiumPath();
  const { chromium } = createRequire(join(folder, "package.json"))("playwright-core");
  const scratch = mkdtempSync(join(tmpdir(), "specdec-page-"));
  // Chromium's sandbox does not run as root, as in a container.
  const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
  const browser = await chromium.launch({ executablePath, args });
  try {
    await test(browser, scratch);
  } finally {
    await browser.close();
    rmSync(scratch, { recursive: true });
  }
}

/** A page that is loaded from disk; `quiet()` holds that it said nothing and asked for nothing but itself. */
export async function openPage(browser, file, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1100, height: 900 }, ...options });
  const said = [], asked = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  page.on("request", (request) => asked.push(request.url()));
  const url = pathToFileURL(file).href;
  await page.goto(url);
  const quiet = () => {
    assert.deepEqual(said, []);
    assert.deepEqual(asked.filter((one) => one !== url && !one.startsWith("data:")), []);
  };
  return { page, quiet };
}

/** Everything about a page that a reader needs, whoever they are. */
export async function requireReadable(page) {
  const facts = await page.evaluate(() => ({
    lang: document.documentElement.lang,
    headings: [...document.querySelectorAll("h1, h2, h3")].map((one) => Number(one.tagName[1])),
    withoutCaption: document.querySelectorAll("table:not(:has(caption))").length,
    withoutScope: document.querySelectorAll("th:not([scope])").length,
    unlabelled: [...document.querySelectorAll("input, select, button")].filter(
      (one) => !one.labels?.length && !one.getAttribute("aria-label") && !one.textContent.trim()).length,
    links: [...document.querySelectorAll("nav a, a.skip")].filter(
      (one) => !document.getElementById(one.hash.slice(1))).length,
    ids: [...document.querySelectorAll("body [id]")].map((one) => one.id),
  }));
  assert.equal(facts.lang, "en");
  assert.equal(facts.headings[0], 1);
  facts.headings.forEach((level, i) => assert.ok(i === 0 || level <= facts.headings[i - 1] + 1, "a heading is skipped"));
  assert.equal(facts.withoutCaption, 0);
  assert.equal(facts.withoutScope, 0);
  assert.equal(facts.unlabelled, 0);
  assert.equal(facts.links, 0);
  assert.equal(new Set(facts.ids).size, facts.ids.length, `an id stands twice: ${facts.ids}`);
}

/** No part of the page sticks out of a phone's screen, except within what scrolls by itself. */
export async function requireNarrow(page) {
  await page.setViewportSize({ width: 390, height: 800 });
  const tooWide = () => page.evaluate(() => [...document.querySelectorAll("body *")].filter((one) =>
    one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll, .drawing, pre, svg, .skip"))
    .map((one) => one.outerHTML.slice(0, 80)));
  // Drawings follow the new width a little later.
  for (let tries = 0; tries < 50 && (await tooWide()).length > 0; ++tries) await page.waitForTimeout(100);
  assert.deepEqual(await tooWide(), []);
}

export { assert };
