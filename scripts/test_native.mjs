/**
 * Builds and runs the C++ tests, without Node: `npm run test:native`. With `--sanitize` they run under the address and
 * undefined-behaviour sanitizers, in a build folder of their own.
 */

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { jobs, ROOT, requireTools, runOrExit, seconds } from './toolchain.mjs'

const sanitize = process.argv.includes('--sanitize')
const folder = join(ROOT, sanitize ? 'build-native-sanitize' : 'build-native')
const started = performance.now()

requireTools()
const options = ['-DTILEWORK_BUILD_TESTS=ON', '-DCMAKE_BUILD_TYPE=RelWithDebInfo']
if (sanitize) options.push('-DTILEWORK_SANITIZE=address,undefined')
runOrExit('Configuring the C++ tests', 'cmake', ['-S', ROOT, '-B', folder, ...options])
runOrExit('Building the C++ tests', 'cmake', ['--build', folder, '--parallel', String(jobs())])
const args = ['--test-dir', folder, '--output-on-failure', '--no-tests=error', '--parallel', String(jobs())]
const { status } = spawnSync('ctest', args, { stdio: 'inherit' })
const kind = sanitize ? ' under address,undefined sanitizers' : ''
console.log(`C++ tests${kind}: ${status === 0 ? 'passed' : 'failed'} (${seconds(started)})`)
process.exit(status ?? 1)
