/**
 * Sets up a fresh checkout and converts a sample file: `npm run demo`.
 *
 * Installs and builds when that has not been done, so this file uses nothing but Node's own modules until then. The
 * sample, the converted files and the picture are left in `demo/`.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Steps } from './steps.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CLI = join('dist', 'cli', 'main.js')
const LAYOUT = 'b_fs_yx_fsv16'

// npm writes this file last, so it is missing after an install that was interrupted.
const installed = existsSync(join(ROOT, 'node_modules', '.package-lock.json'))
const steps = new Steps('npm run demo', [
  installed
    ? { name: 'Building what is missing or stale', usualSeconds: 15 }
    : { name: 'Installing and building (needs a C++ compiler and cmake)', usualSeconds: 120 },
  { name: 'A sample file: an activation, weights and a sparse tensor', usualSeconds: 1 },
  {
    name: `Its activation in the GPU layout ${LAYOUT}: blocks of 16 features, the last one padded`,
    usualSeconds: 1,
  },
  { name: 'And back, with the command that convert printed', usualSeconds: 0.5 },
  { name: 'Where each element lands', usualSeconds: 1 },
  { name: 'Result', usualSeconds: 1 },
])
setUp()
await show()

function setUp() {
  heading()
  const args = installed
    ? ['run', '--silent', 'build:all']
    : ['ci', '--include=dev', '--no-audit', '--no-fund']
  const { status } = spawnSync('npm', args, {
    cwd: ROOT,
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}

async function show() {
  rmSync(join(ROOT, 'demo'), { recursive: true, force: true })
  mkdirSync(join(ROOT, 'demo'))
  const { saveSample } = await import('./demo_sample.mjs')
  const shape = await saveSample(join(ROOT, 'demo', 'sample.btf'))

  heading()
  tilework('inspect', 'demo/sample.btf')
  tilework('check', 'demo/sample.btf', '--level', 'strict')

  heading()
  tilework('convert', 'demo/sample.btf', 'demo/blocked.btf', '--tensor', '#0', '--layout', LAYOUT)
  tilework('inspect', 'demo/blocked.btf')

  heading()
  const stored = ['--from-layout', LAYOUT, '--shape', shape.join(',')]
  tilework('convert', 'demo/blocked.btf', 'demo/blocked.back.btf', ...stored, '--tensor', '#0')

  heading()
  tilework('layout', LAYOUT, '--shape', '2,2,2,2')
  quietly('layout', LAYOUT, '--shape', '2,2,2,2', '--svg', 'demo/layout.svg')
  console.log('demo/layout.svg has the same picture for a browser.')
  verdict()
}

function verdict() {
  const before = firstTensor('demo/sample.btf')
  const after = firstTensor('demo/blocked.back.btf')
  const same = before.sha256 === after.sha256 && before.shape.join() === after.shape.join()
  heading()
  console.log(`SHA-256 of the activation before  ${before.sha256}`)
  console.log(`SHA-256 of the activation after   ${after.sha256}`)
  console.log(same ? 'The same: nothing was lost on the way.' : 'They differ: this is a defect of tilework.')
  console.log(
    '\nFiles: demo/sample.btf, demo/blocked.btf, demo/blocked.back.btf, and demo/layout.svg for a browser.',
  )
  console.log('Next: npm test')
  steps.done()
  process.exitCode = same ? 0 : 1
}

/** Runs the command line as a user would, and shows the command. */
function tilework(...args) {
  console.log(`$ tilework ${args.map((arg) => (arg.includes('#') ? `'${arg}'` : arg)).join(' ')}`)
  run(args, 'inherit')
  console.log()
}

/** Runs the command line and returns what it prints. */
function quietly(...args) {
  return run(args, ['ignore', 'pipe', 'inherit'])
}

function run(args, stdio) {
  const result = spawnSync(process.execPath, [CLI, ...args], { cwd: ROOT, encoding: 'utf8', stdio })
  if (result.status === 0) return result.stdout
  console.error(`tilework ${args.join(' ')} ended with exit code ${result.status}, which it should not.`)
  process.exit(1)
}

function firstTensor(file) {
  return JSON.parse(quietly('inspect', file, '--json', '--digest')).tensors[0]
}

/** The line of the next step, set apart from what the step before printed. */
function heading() {
  steps.done()
  const [bold, plain] = process.stdout.isTTY ? ['\x1b[1m', '\x1b[0m'] : ['', '']
  process.stdout.write(`\n${bold}`)
  steps.next()
  process.stdout.write(`${plain}\n`)
}
