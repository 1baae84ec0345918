import { copyFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { assert, openPage, processorSeconds, requireNarrow, requireReadable, run, withBrowser } from "./browser.mjs";

await withBrowser(async (browser, scratch) => {
  // A name that would be markup.
  const trace = join(scratch, "<img src=x onerror=alert(1)>&\"'.safetensors");
  const plain = join(scratch, "plain.safetensors");
  run("trace", "generate", "--output", plain, "--sequences", "8", "--tokens", "60");
  copyFileSync(plain, trace);
  const file = join(scratch, "report.html");
  const seconds = processorSeconds("report", "--static", "--trace", trace, "--c", "0.05", "--emit", "vllm", "--output", file);
  assert.ok(seconds < 5, `a report takes ${seconds} s, but should take under 5 s`);
  assert.ok(statSync(file).size < 2e6);

  const { page, quiet } = await openPage(browser, file);
  quiet();
  await requireReadable(page);
  const facts = await page.evaluate(() => ({
    text: document.body.innerText,
    images: document.querySelectorAll("img, script").length,
    words: document.querySelector(".answer p").innerText,
    drawn: document.querySelectorAll(".drawing svg").length,
    figures: document.querySelectorAll("figure").length,
    command: document.querySelector("#again ~ pre").innerText,
    dark: getComputedStyle(document.body).backgroundColor,
  }));
  assert.equal(facts.images, 0);
  assert.ok(facts.text.includes("<img src=x onerror=alert(1)>"), "the file's name is shown as it is");
  assert.match(facts.words, /^(Draft \d+ tokens?|Do not draft)/);
  assert.ok(facts.figures > 0);
  assert.equal(facts.drawn, facts.figures);
  assert.match(facts.command, /^specdec report --static --trace /);
  assert.match(facts.text, /SHA-256/);
  assert.match(facts.text, /num_speculative_tokens/);
  await requireNarrow(page);

  const night = await openPage(browser, file, { colorScheme: "dark" });
  assert.notEqual(await night.page.evaluate(() => getComputedStyle(document.body).backgroundColor), facts.dark);
  const printed = await page.pdf({ format: "A4" });
  assert.ok(printed.length > 10000);
});
