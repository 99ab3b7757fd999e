// SPDX-License-Identifier: Apache-2.0
// Makes the page: the program and the style go into one HTML file that loads nothing.
//   node bundle.mjs FILE
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const common = { bundle: true, minify: true, write: false, legalComments: 'none', logLevel: 'warning' };
const code = await build({
  ...common,
  entryPoints: [join(here, 'src/main.tsx')],
  format: 'iife',
  target: 'es2020',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  define: { 'process.env.NODE_ENV': '"production"' },
});
const style = await build({ ...common, entryPoints: [join(here, 'src/style.css')] });

// What stands in a script must not end it.
const script = code.outputFiles[0].text.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
const html = readFileSync(join(here, 'src/page.html'), 'utf8')
  .replace('/*style*/', () => style.outputFiles[0].text)
  .replace('/*script*/', () => script);
writeFileSync(process.argv[2], html);
console.log(`${process.argv[2]}: ${Math.round(html.length / 1000)} kB`);
