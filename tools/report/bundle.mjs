// SPDX-License-Identifier: Apache-2.0
// Makes the pages: program and style go into one HTML file each that loads nothing.
//   node bundle.mjs FILE      the report page; beside it sweep.html, the page of sweeps, and serve.html, that of `weft serve`
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const common = { bundle: true, minify: true, write: false, legalComments: 'none', logLevel: 'warning' };
const style = await build({ ...common, entryPoints: [join(here, 'src/style.css')] });

// Only the page of `weft serve` talks to anybody: to who served it.
async function page(entry, file, asks = false) {
  const code = await build({
    ...common,
    entryPoints: [join(here, entry)],
    format: 'iife',
    target: 'es2020',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  // What stands in a script must not end it.
  const script = code.outputFiles[0].text.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
  const html = readFileSync(join(here, 'src/page.html'), 'utf8')
    .replace("default-src 'none';", (all) => (asks ? `${all} connect-src 'self';` : all))
    .replace('/*style*/', () => style.outputFiles[0].text)
    .replace('/*script*/', () => script);
  writeFileSync(file, html);
  console.log(`${file}: ${Math.round(html.length / 1000)} kB`);
}

await page('src/main.tsx', process.argv[2]);
await page('src/sweep/main.tsx', join(dirname(process.argv[2]), 'sweep.html'));
await page('src/serve/main.tsx', join(dirname(process.argv[2]), 'serve.html'), true);
