/**
 * `npm run test:addon:sanitize -- [--threads] [FOLDER…]`: builds the addon with the address and undefined-behaviour sanitizers, or
 * with the thread sanitizer, and runs the folders of the suite on it, one after the other, in a Node that loads the sanitizer
 * first. A report with a frame of the addon fails, and so does a test.
 *
 * Node itself is not instrumented: reports about its own memory and threads say nothing about the addon and are left out.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, isAbsolute, join } from 'node:path'
import { parseArgs } from 'node:util'
import { compiler, ROOT, seconds } from '../../scripts/toolchain.mjs'
import { buildNativeTests } from './native_tests.mjs'

const SANITIZERS = {
  sanitize: {
    library: 'libasan.so',
    // Node frees at its end what it does not need to free. Signals stay with the handlers of the addon and with the tests. Tests
    // ask for more memory than there is.
    options: {
      ASAN_OPTIONS:
        'detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0:allocator_may_return_null=1:quarantine_size_mb=16',
      UBSAN_OPTIONS: 'print_stacktrace=1',
    },
  },
  threads: {
    library: 'libtsan.so',
    options: { TSAN_OPTIONS: 'ignore_noninstrumented_modules=1:exitcode=0:handle_segv=0:handle_sigbus=0' },
  },
}
/** Folders without the addon, or with children that bring their own Node or compiler. */
const LEFT_OUT = new Set(['fixtures', 'package', 'programs', 'scripts'])

const { values, positionals } = parseArgs({
  options: { threads: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const kind = values.threads ? 'threads' : 'sanitize'
const reason = unavailable(SANITIZERS[kind].library)
if (reason !== undefined) console.log(`addon under ${kind}: skipped, ${reason}`)
else process.exitCode = await runFolders(positionals.length > 0 ? positionals : foldersOfTests())

function unavailable(library) {
  if (process.platform !== 'linux') return 'it requires LD_PRELOAD of Linux'
  return isAbsolute(libraryPath(library)) ? undefined : `the compiler has no ${library}`
}

function libraryPath(library) {
  return execFileSync(compiler() ?? 'g++', [`-print-file-name=${library}`], { encoding: 'utf8' }).trim()
}

function foldersOfTests() {
  return readdirSync(join(ROOT, 'test'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !LEFT_OUT.has(entry.name))
    .map(({ name }) => `test/${name}`)
}

/** @returns {Promise<number>} the exit code */
async function runFolders(folders) {
  const addon = await buildAddon()
  const reports = join(addon, 'reports')
  const results = folders.map((folder) => runFolder(folder, addon, reports))
  console.log(`\n${results.map(({ text }) => text).join('\n')}`)
  return results.some(({ failed }) => failed) ? 1 : 0
}

/** @returns {Promise<string>} the folder with the addon */
function buildAddon() {
  const requireHere = createRequire(import.meta.url)
  const headers = dirname(requireHere.resolve('node-addon-api/package.json'))
  const options = [`-DCMAKE_JS_INC=${requireHere('node-api-headers').include_dir};${headers}`]
  return buildNativeTests(kind, { targets: ['tilework'], options })
}

function runFolder(folder, addon, reports) {
  const started = performance.now()
  rmSync(reports, { recursive: true, force: true })
  mkdirSync(reports)
  const { library, options } = SANITIZERS[kind]
  const env = { ...process.env, LD_PRELOAD: libraryPath(library), TILEWORK_PREBUILD: addon }
  for (const [name, value] of Object.entries(options))
    env[name] = `${value}:log_path=${join(reports, 'report')}`
  const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
  // Sanitized code is five to fifteen times as slow.
  const args = [vitest, 'run', folder, '--testTimeout=600000', '--hookTimeout=600000']
  const { status } = spawnSync(process.execPath, args, { cwd: ROOT, env, stdio: 'inherit' })
  const ours = reportsOfAddon(reports)
  for (const report of ours) console.log(report)
  const failed = ours.length > 0 || status !== 0
  const tests = status === 0 ? 'tests passed' : 'tests failed'
  return { failed, text: `${folder}: ${ours.length} reports, ${tests} (${seconds(started)})` }
}

/** The reports that name the addon. */
function reportsOfAddon(folder) {
  const files = existsSync(folder) ? readdirSync(folder) : []
  const texts = files.flatMap((name) => readFileSync(join(folder, name), 'utf8').split(/^={10,}$/m))
  return texts.filter((text) => text.includes('tilework.node') || text.includes('runtime error'))
}
