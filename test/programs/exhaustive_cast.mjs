/**
 * Casts all 2^32 patterns of float32 to every type of 4, 8 and 16 bits and compares with the reference, bit for bit:
 * `npm run test:exhaustive-cast`, or `-- int8 uint8` for these types alone. Takes minutes a type on two threads, so it is
 * no part of the test suite; docs/casts.md has the last result.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { buildNativeTests } from './native_tests.mjs'

const folder = buildNativeTests('plain', { targets: ['cast_test'] })
const args = ['--exhaustive', ...process.argv.slice(2)]
const { status } = spawnSync(join(folder, 'test', 'native', 'cast_test'), args, { stdio: 'inherit' })
process.exit(status ?? 1)
