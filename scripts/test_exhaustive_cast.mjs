/**
 * Casts all 2^32 patterns of float32 to every type of 8 and 16 bits and compares with the reference, bit for bit:
 * `npm run test:exhaustive-cast`. Takes about a minute a type, so it is no part of the test suite; docs/casts.md has
 * the last result.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { buildNativeTests } from './native_tests.mjs'

const folder = buildNativeTests('plain', { targets: ['cast_test'] })
const { status } = spawnSync(join(folder, 'test', 'native', 'cast_test'), ['--exhaustive'], {
  stdio: 'inherit',
})
process.exit(status ?? 1)
