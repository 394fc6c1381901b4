/**
 * Runs the test suite on every supported Node version and in both pools of vitest: `npm run test:matrix`. Arguments are
 * passed on to vitest, except `--quick`, which runs each other version once, in one of the two pools.
 *
 * The current Node tests its own version; the others are installed from npm.
 */
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { nodeBinary } from '../../scripts/node_binary.mjs'
import { ROOT, seconds } from '../../scripts/toolchain.mjs'

const LINES = ['20', '22', '24', '26']
const POOLS = ['forks', 'threads']

const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
const isQuick = process.argv.includes('--quick')
const vitestArguments = process.argv.slice(2).filter((argument) => argument !== '--quick')
const results = LINES.flatMap((line, at) => poolsOf(line, at).map((pool) => runSuite(line, pool)))
console.log(`\n${results.map((result) => result.text).join('\n')}`)
process.exit(results.some((result) => result.failed) ? 1 : 0)

function poolsOf(line, at) {
  if (!isQuick) return POOLS
  return isCurrent(line) ? [] : [POOLS[at % POOLS.length]]
}

function runSuite(line, pool) {
  const started = performance.now()
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
  return isCurrent(line) ? { node: process.execPath } : nodeBinary(line)
}
