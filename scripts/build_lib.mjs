/**
 * Bundles `lib` to `dist`, and the page of `tilework view` to `dist/view`: `npm run build:lib`, and `npm ci` in a checkout. One
 * bundle for each public entry and the command, shared code in `dist/chunks`; what is imported dynamically stays a chunk of its own and loads on demand.
 *
 * CommonJS has no second implementation: `index.cjs` requires `index.js`, so that there is one TileworkError class. Its
 * types are copies of the declaration files, because TypeScript takes a `.d.ts` of an ES module package for ESM alone.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { build } from 'tsdown'
import { buildPage } from './build_page.mjs'
import { ENTRIES } from './entries.mjs'
import { fail, ROOT, seconds } from './toolchain.mjs'

const DIST = join(ROOT, 'dist')
/** Public entries: `tilework` is `index`, `tilework/NAME` each other one. */
const COMMAND = 'cli/main'

/** What `dist` depends on. The lock file has the versions of the packages that are bundled, and of the bundlers. */
const INPUTS = [
  'lib',
  ...['package.json', 'package-lock.json', 'tsconfig.json'],
  ...['scripts/build_lib.mjs', 'scripts/build_page.mjs', 'scripts/entries.mjs'],
]
/** Hash of the inputs of the last build, and the files that it wrote: a build of the same inputs has nothing to do. */
const LAST_BUILD = join(ROOT, '.library_build.json')

const started = performance.now()
const startTime = Date.now()
const inputs = hashOf(INPUTS)
if (isUpToDate()) console.log('library: dist is up to date')
else await buildLibrary()

async function buildLibrary() {
  rmSync(LAST_BUILD, { force: true })
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
  writeFileSync(LAST_BUILD, JSON.stringify({ inputs, outputs: outputs() }))
  console.log(`library: dist/{${ENTRIES}}.js, dist/${COMMAND}.js (${seconds(started)})`)
}

function isUpToDate() {
  if (!existsSync(LAST_BUILD)) return false
  const last = JSON.parse(readFileSync(LAST_BUILD, 'utf8'))
  return last.inputs === inputs && JSON.stringify(last.outputs) === JSON.stringify(outputs())
}

function hashOf(names) {
  const hash = createHash('sha256')
  for (const name of names) {
    const path = join(ROOT, name)
    for (const file of statSync(path).isDirectory() ? filesOf(path).sort() : [path]) {
      hash.update(`${relative(ROOT, file)}\0`).update(readFileSync(file))
    }
  }
  return hash.digest('hex')
}

/** Names, sizes and times of the files in `dist`: whoever changes one has it built again. */
function outputs() {
  const files = filesOf(DIST).sort()
  return files.map((path) => [relative(DIST, path), statSync(path).size, statSync(path).mtimeMs])
}

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
    // Names of modules as comments take 45 KB.
    inputOptions: { experimental: { attachDebugInfo: 'none' } },
    outputOptions: { chunkFileNames: 'chunks/[name].js', comments: false },
    logLevel: 'error',
  })
}

function copyDeclarations(path) {
  // Copies for compilers: whoever reads declarations comes to the .d.ts, so these have no indentation.
  const text = readFileSync(path, 'utf8')
    .replace(/(from "\.[^"]*)\.js"/g, '$1.cjs"')
    .replace(/^ +/gm, '')
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
