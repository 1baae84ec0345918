// Bundles the page's script, its charting library and the compressed program into one file.
// usage: bundle.mjs BUILD_FOLDER OUTPUT     BUILD_FOLDER holds planner_module.{mjs,wasm} and node_modules
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const [folder, output] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const { buildSync } = require("esbuild");

writeFileSync(join(folder, "planner.wasm.gz"), gzipSync(readFileSync(join(folder, "planner_module.wasm")), { level: 9 }));
mkdirSync(dirname(output), { recursive: true });
const { version } = require("echarts/package.json");
buildSync({
  entryPoints: [join(dirname(fileURLToPath(import.meta.url)), "page", "main.js")],
  outfile: output,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  loader: { ".gz": "binary" },
  nodePaths: [join(folder, "node_modules")],
  alias: {
    "planner-module": join(folder, "planner_module.mjs"),
    "planner-program": join(folder, "planner.wasm.gz"),
  },
  define: { ECHARTS_VERSION: JSON.stringify(version) },
  logLevel: "warning",
});
const licences = ["echarts/LICENSE", "echarts/NOTICE", "zrender/LICENSE", "tslib/LICENSE.txt"].map(
  (file) => `${file}\n\n${readFileSync(join(folder, "node_modules", file), "utf8")}`);
writeFileSync(join(dirname(output), "LICENSES.txt"), licences.join("\n\n"));
