import { copyFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert, openPage, requireNarrow, requireReadable, run, withBrowser } from "./browser.mjs";

const words = (page) => page.locator("#planner-words p").first().innerText();
const drawing = (page, name) => page.locator(`#planner-figure-${name} [role="img"] svg`).innerHTML();
// Whatever was changed is computed at the next frame, other batches 60 ms later, and drawings begin at the frame after.
const settled = (page) => page.evaluate(async () => {
  const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await frames();
  await new Promise((done) => setTimeout(done, 100));
  await frames();
});

await withBrowser(async (browser, scratch) => {
  const file = join(scratch, "report.html");
  run("report", "--alpha", "0.7:0.8", "--c", "0.05", "--output", file);
  assert.ok(statSync(file).size < 2e6);
  const { page, quiet } = await openPage(browser, file);
  await page.evaluate(() => window.specdec);
  await settled(page);
  quiet();
  await requireReadable(page);

  // It begins with the report's own answer.
  assert.equal(await words(page), await page.locator(".answer p").first().innerText());

  // A number changes the words, the table and the figures.
  const before = { words: await words(page), gamma: await drawing(page, "gamma"), map: await drawing(page, "map") };
  await page.fill("#planner-c", "0.3");
  await settled(page);
  assert.notEqual(await words(page), before.words);
  assert.notEqual(await drawing(page, "gamma"), before.gamma);
  assert.notEqual(await drawing(page, "map"), before.map);

  // So does a slider, by keyboard; the high end follows the low one.
  await page.focus("#planner-alpha_low-slider");
  for (let i = 0; i < 30; ++i) await page.keyboard.press("ArrowRight");
  await settled(page);
  assert.equal(await page.inputValue("#planner-alpha_low"), "0.85");
  assert.equal(await page.inputValue("#planner-alpha_high"), "0.85");
  assert.match(await words(page), /^Draft \d+ tokens?: about [\d.]+x plain decoding\.$/);

  // A wrong value is said where the answer stands, and the page goes on.
  await page.fill("#planner-alpha_high", "2");
  await settled(page);
  assert.match(await words(page), /must be a number in \[0, 1\]/);
  await page.click("#planner-reset");
  await settled(page);
  assert.equal(await words(page), before.words);

  // Hardware and models.
  await page.selectOption("#planner-cost", "hardware");
  await settled(page);
  assert.match(await words(page), /at 8 requests/);
  const batch = await drawing(page, "batch");
  await page.selectOption("#planner-hardware", "h200-sxm");
  await page.fill("#planner-context", "8192");
  await settled(page);
  assert.notEqual(await drawing(page, "batch"), batch);
  await page.selectOption("#planner-draft_kind", "ngram");
  await settled(page);
  assert.ok(!(await page.isVisible("#planner-draft_model")));
  assert.match(await words(page), /at 8 requests/);

  // Values to hover over.
  const figure = page.locator("#figure-speedup-over-gamma .drawing");
  await figure.scrollIntoViewIfNeeded();
  const box = await figure.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await figure.getByText("speedup").first().waitFor();
  quiet();
  await requireNarrow(page);

  // A recording knows what lenience gains.
  const trace = join(scratch, "trace.safetensors"), recorded = join(scratch, "recorded.html");
  run("trace", "generate", "--output", trace, "--law", "logit-noise", "--alpha", "0.6", "--vocab", "30", "--sequences",
    "6", "--tokens", "40");
  run("report", "--trace", trace, "--c", "0.05", "--output", recorded);
  const second = await openPage(browser, recorded);
  await second.page.evaluate(() => window.specdec);
  const strict = await words(second.page);
  // It starts from what was measured, which no rate says; a lenience is known by its rate alone.
  assert.equal(strict, await second.page.locator(".answer p").first().innerText());
  assert.ok(!(await second.page.isVisible("#planner-alpha_low")));
  await second.page.selectOption("#planner-lenience", "0.5");
  await settled(second.page);
  assert.notEqual(await words(second.page), strict);
  assert.equal(await second.page.inputValue("#planner-acceptance"), "rate");
  // Another rate is no longer that of the lenience.
  await second.page.fill("#planner-alpha_high", "0.99");
  assert.equal(await second.page.inputValue("#planner-lenience"), "");
  await second.page.selectOption("#planner-acceptance", "report");
  await settled(second.page);
  assert.equal(await second.page.inputValue("#planner-lenience"), "1");
  assert.equal(await words(second.page), strict);
  // Times and what bounds a pass, with hardware; a series that is hidden by keyboard; rows of a legend, not a scroller.
  await second.page.selectOption("#planner-cost", "hardware");
  await settled(second.page);
  assert.match(await second.page.locator("#planner-numbers thead").innerText(), /ms per token[^]*Target's pass bound by/);
  for (const name of ["batch", "time"]) assert.ok(await second.page.isVisible(`#planner-figure-${name}`));
  const legend = second.page.locator("#planner-figure-tokens .legend");
  const shown = await drawing(second.page, "tokens");
  await legend.getByRole("button").first().focus();
  await second.page.keyboard.press("ArrowRight");
  await second.page.keyboard.press("Enter");
  await settled(second.page);
  assert.equal(await legend.getByRole("button", { name: "as measured" }).getAttribute("aria-pressed"), "false");
  assert.notEqual(await drawing(second.page, "tokens"), shown);
  second.quiet();
  await requireNarrow(second.page);

  // Names that would be markup stay text wherever they are shown, and a script that got in would not run.
  const hostile = "<img src=x onerror=alert(1)>&\"'";
  const device = JSON.parse(readFileSync(new URL("../../analysis/cost/presets/hardware/l4.json", import.meta.url)));
  const hardware = join(scratch, "device.json"), named = join(scratch, `${hostile}.safetensors`);
  writeFileSync(hardware, JSON.stringify({ ...device, name: hostile, aliases: [] }));
  copyFileSync(trace, named);
  for (const words of [
    ["--trace", named, "--c", "0.05"],
    ["--alpha", "0.7", "--hardware", hardware, "--model", "llama-3.1-8b", "--draft-model", "llama-3.2-1b", "--batch", "1,8"],
  ]) {
    const shown = join(scratch, "hostile.html");
    run("report", ...words, "--output", shown);
    const third = await openPage(browser, shown);
    third.page.on("dialog", () => assert.fail("a name ran as a script"));
    await third.page.evaluate(() => window.specdec);
    await settled(third.page);
    assert.ok((await third.page.locator("body").innerText()).includes("<img src=x onerror=alert(1)>"));
    for (const drawn of await third.page.locator(".drawing").all()) {
      await drawn.scrollIntoViewIfNeeded();
      const place = await drawn.boundingBox();
      if (!place) continue;
      for (const share of [0.3, 0.5, 0.7]) await third.page.mouse.move(place.x + place.width * share, place.y + place.height / 2);
    }
    assert.equal(await third.page.locator("img").count(), 0);
    third.quiet();
    const ran = await third.page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.broke = true";
      document.body.append(script);
      return window.broke === true;
    });
    assert.equal(ran, false);
    await third.page.close();
  }
  for (const one of await second.page.locator(".legend").all()) {
    assert.ok(await one.evaluate((element) => element.scrollWidth <= element.clientWidth));
  }
});
