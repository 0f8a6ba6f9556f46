// Drives a headless browser for the tests: a JSON request a line, a JSON answer a line.
//
//   node driver.mjs FOLDER BROWSER
//
// FOLDER has node_modules with puppeteer-core and axe-core.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [folder, browserPath] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const puppeteer = require("puppeteer-core");
const axe = require.resolve("axe-core");

const browser = await puppeteer.launch({
  executablePath: browserPath,
  headless: "shell",
  args: ["--no-sandbox", "--disable-gpu", "--no-zygote", "--disable-dev-shm-usage"],
});
let page;
let seen;

const actions = {
  async open({ url, width = 1280, height = 900, scheme = "light" }) {
    await page?.close();
    page = await browser.newPage();
    seen = { errors: [], requests: [] };
    page.on("console", (one) => {
      if (["error", "warn"].includes(one.type())) seen.errors.push(one.text());
    });
    page.on("pageerror", (error) => seen.errors.push(String(error)));
    page.on("request", (one) => seen.requests.push(one.url()));
    await page.setViewport({ width, height });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.goto(url, { waitUntil: "load" });
  },
  press: ({ keys }) => page.keyboard.press(keys),
  async chord({ keys }) {
    for (const key of keys) await page.keyboard.down(key);
    for (const key of [...keys].reverse()) await page.keyboard.up(key);
  },
  type: ({ text }) => page.keyboard.type(text),
  click: ({ selector }) => page.click(selector),
  js: ({ code }) => page.evaluate(code),
  media: ({ type }) => page.emulateMediaType(type),
  seen: () => seen,
  async axe() {
    // By the protocol, past the page's own policy, which forbids just this.
    await page.setBypassCSP(true);
    await page.reload();
    await page.addScriptTag({ path: axe });
    const found = await page.evaluate(() => {
      for (const one of document.querySelectorAll("details.gap")) one.open = true;
      return globalThis.axe.run();
    });
    return {
      passed: found.passes.map((one) => one.id),
      broken: found.violations.map((one) => [one.id, one.nodes[0].html.slice(0, 200),
        one.nodes[0].failureSummary]),
    };
  },
  shot: ({ path, full = false }) => page.screenshot({ path, fullPage: full }).then(() => null),
  pdf: ({ path }) => page.pdf({ path, format: "A4" }).then(() => null),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { act, ...rest } = JSON.parse(line);
  let answer;
  try {
    answer = { result: (await actions[act](rest)) ?? null };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
