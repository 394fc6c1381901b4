/**
 * Casts all 2^32 float32 bit patterns to every type of 4, 8 and 16 bits, and compares the results with the reference:
 * `npm run test:exhaustive-cast`, or `-- int8 uint8` for some types. Each type takes minutes on two threads, so the test
 * suite does not run it; docs/casts.md has the last result.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { buildNativeTests } from './native_tests.mjs'

const folder = await buildNativeTests('plain', { targets: ['cast_test'] })
const args = ['--exhaustive', ...process.argv.slice(2)]
const { status } = spawnSync(join(folder, 'test', 'native', 'cast_test'), args, { stdio: 'inherit' })
process.exit(status ?? 1)
