/**
 * Builds and runs the C++ tests, without Node: `npm run test:native`. With `--sanitize` all of them run under the
 * address and undefined-behaviour sanitizers, and those with threads under the thread sanitizer.
 */
import { buildNativeTests, runNativeTests } from './native_tests.mjs'
import { seconds } from './toolchain.mjs'

const sanitize = process.argv.includes('--sanitize')
let failed = false
if (sanitize) {
  test('C++ tests under address,undefined sanitizers', 'sanitize')
  test('C++ tests with threads under the thread sanitizer', 'threads', ['threads_tests'], ['-L', 'threads'])
} else {
  test('C++ tests', 'plain')
}
process.exitCode = failed ? 1 : 0

function test(name, kind, targets, options) {
  const started = performance.now()
  const passed = runNativeTests(buildNativeTests(kind, { targets }), options)
  console.log(`${name}: ${passed ? 'passed' : 'failed'} (${seconds(started)})`)
  failed ||= !passed
}
