/**
 * Builds and runs the C++ tests: `npm run test:native`. `--sanitize` runs them under the address and undefined-behaviour
 * sanitizers, and `--threads` runs the multithreaded ones under the thread sanitizer.
 */

import { seconds } from '../../scripts/toolchain.mjs'
import { buildNativeTests, runNativeTests } from './native_tests.mjs'

const asked = new Set(process.argv.slice(2))
let failed = false
if (asked.has('--sanitize')) await test('C++ tests under address,undefined sanitizers', 'sanitize')
if (asked.has('--threads')) {
  await test(
    'C++ tests with threads under the thread sanitizer',
    'threads',
    ['threads_tests'],
    ['-L', 'threads'],
  )
}
if (asked.size === 0) await test('C++ tests', 'plain')
process.exitCode = failed ? 1 : 0

async function test(name, kind, targets, options) {
  const started = performance.now()
  const passed = runNativeTests(await buildNativeTests(kind, { targets }), options)
  console.log(`${name}: ${passed ? 'passed' : 'failed'} (${seconds(started)})`)
  failed ||= !passed
}
