/**
 * Bundles `lib` to `dist`, and the page of `tilework view` to `dist/view`: `npm run build:lib`, and `npm ci` in a checkout. One
 * bundle for each public entry and the command, shared code in `dist/chunks`; what is imported dynamically stays a chunk of its own and loads on demand.
 *
 * CommonJS has no second implementation: `index.cjs` requires `index.js`, so that there is one TileworkError class. Its
 * types are copies of the declaration files, because TypeScript takes a `.d.ts` of an ES module package for ESM alone.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'tsdown'
import { buildPage } from './build_page.mjs'
import { ENTRIES } from './entries.mjs'
import { fail, ROOT, seconds } from './toolchain.mjs'

const DIST = join(ROOT, 'dist')
/** Public entries: `tilework` is `index`, `tilework/NAME` each other one. */
const COMMAND = 'cli/main'

const started = performance.now()
const startTime = Date.now()
try {
  await Promise.all([bundle(), buildPage(DIST)])
} catch (error) {
  console.error(error)
  fail('Bundling lib/ failed; the errors of the bundler are above.')
}
rmSync(join(DIST, `${COMMAND}.d.ts`))
for (const path of filesOf(DIST)) removeIfStale(path)
for (const path of filesOf(DIST, '.d.ts')) copyDeclarations(path)
for (const entry of ENTRIES) {
  writeFileSync(join(DIST, `${entry}.cjs`), `module.exports = require('./${entry}.js')\n`)
}
console.log(`library: dist/{${ENTRIES}}.js, dist/${COMMAND}.js (${seconds(started)})`)

async function bundle() {
  await build({
    config: false,
    cwd: ROOT,
    entry: Object.fromEntries([...ENTRIES, COMMAND].map((entry) => [entry, `lib/${entry}.ts`])),
    outDir: 'dist',
    clean: false,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    tsconfig: 'tsconfig.json',
    // They stay here, for the notices and for a release: a package without them must not name them.
    sourcemap: 'hidden',
    dts: { sourcemap: false },
    fixedExtension: false,
    hash: false,
    // Comments are dropped, since they cost time at each import. Lines and names stay: Node prints the line that threw an
    // uncaught error, and of a file without line breaks that is the whole file.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: false } },
    outputOptions: { chunkFileNames: 'chunks/[name].js', comments: false },
    logLevel: 'error',
  })
}

function copyDeclarations(path) {
  const text = readFileSync(path, 'utf8').replace(/(from "\.[^"]*)\.js"/g, '$1.cjs"')
  writeFileSync(path.replace(/\.d\.ts$/, '.d.cts'), text)
}

/** `dist` is packed whole, so that nothing of an earlier build may stay. */
function removeIfStale(path) {
  if (statSync(path).mtimeMs < startTime) rmSync(path)
}

function filesOf(folder, ending = '') {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => join(entry.parentPath, entry.name))
}
