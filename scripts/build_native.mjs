/**
 * Builds the addon into `build/Release` with cmake-js: `npm run build:native`, and `npm ci` in a checkout.
 *
 * The headers come from node-api-headers (cmake-js takes them because package.json has `binary.napi_versions`), so
 * nothing is downloaded. cmake rebuilds only what changed.
 */
import { existsSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { buildOrExit } from './build_progress.mjs'
import { compiler, fail, jobs, ROOT, requireTools, seconds } from './toolchain.mjs'

const BUILD = join(ROOT, 'build')
const started = performance.now()

requireTools()
dropForeignBuild()
await buildOrExit('Building the native addon', process.execPath, [cmakeJs(), 'build', ...cmakeJsOptions()])
console.log(`native addon: ${addon()} (${seconds(started)})`)

function cmakeJs() {
  return join(dirname(createRequire(import.meta.url).resolve('cmake-js/package.json')), 'bin', 'cmake-js')
}

function cmakeJsOptions() {
  const options = ['--parallel', String(jobs())]
  // Without this option cmake-js requires a g++ or clang++ on PATH.
  if (process.env.CXX) options.push('--cxx', compiler())
  return options
}

/** cmake refuses a build folder that was configured elsewhere, as after a move or copy of the checkout. */
function dropForeignBuild() {
  const cache = join(BUILD, 'CMakeCache.txt')
  if (!existsSync(cache)) return
  const home = /^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$/m.exec(readFileSync(cache, 'utf8'))?.[1]
  if (home === undefined || !existsSync(home) || realpathSync(home) !== realpathSync(ROOT)) {
    rmSync(BUILD, { recursive: true })
  }
}

/** The loader takes the first `tilework*.node` of the folder, so there must be exactly one. */
function addon() {
  const folder = join('build', 'Release')
  const found = readdirSync(join(ROOT, folder)).filter((name) => name.endsWith('.node'))
  if (found.length !== 1) fail(`${folder} has ${found.length} files *.node; expected exactly one`)
  return join(folder, found[0])
}
