/**
 * Casts all 2^32 patterns of float32 to every type of 8 and 16 bits and compares with the reference, bit for bit:
 * `npm run test:exhaustive-cast`. Takes about a minute a type, so it is no part of the test suite; docs/casts.md has
 * the last result.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { jobs, ROOT, requireTools, runOrExit } from './toolchain.mjs'

const folder = join(ROOT, 'build-native')

requireTools()
const options = ['-DTILEWORK_BUILD_TESTS=ON', '-DCMAKE_BUILD_TYPE=RelWithDebInfo']
runOrExit('Configuring the C++ tests', 'cmake', ['-S', ROOT, '-B', folder, ...options])
runOrExit('Building the cast test', 'cmake', [
  '--build',
  folder,
  '--target',
  'cast_test',
  '--parallel',
  String(jobs()),
])
const { status } = spawnSync(join(folder, 'test', 'native', 'cast_test'), ['--exhaustive'], {
  stdio: 'inherit',
})
process.exit(status ?? 1)
