/**
 * Builds and runs the C++ tests, without Node: `npm run test:native`. With `--sanitize` they run under the address and
 * undefined-behaviour sanitizers, in a build folder of their own.
 */
import { spawnSync } from 'node:child_process'
import { buildNativeTests } from './native_tests.mjs'
import { jobs, seconds } from './toolchain.mjs'

const sanitize = process.argv.includes('--sanitize')
const started = performance.now()
const folder = buildNativeTests(sanitize ? 'sanitize' : 'plain')
const args = ['--test-dir', folder, '--output-on-failure', '--no-tests=error', '--parallel', String(jobs())]
const { status } = spawnSync('ctest', args, { stdio: 'inherit' })
const kind = sanitize ? ' under address,undefined sanitizers' : ''
console.log(`C++ tests${kind}: ${status === 0 ? 'passed' : 'failed'} (${seconds(started)})`)
process.exit(status ?? 1)
