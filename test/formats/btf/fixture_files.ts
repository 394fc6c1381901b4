/** The two real BTF files, kept beside the checkout; tests that need them say so and skip when they are absent. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'

const folder = resolve(import.meta.dirname, '../../../../shared/fixtures/btf')

export const FIXTURE_NAMES = ['test_tensor.btf', 'matmul_test_f32.btf'] as const

export const hasFixtures = FIXTURE_NAMES.every((name) => existsSync(resolve(folder, name)))

if (!hasFixtures) console.warn(`skipped: the real BTF files are not in ${folder}`)

export function fixturePath(name: (typeof FIXTURE_NAMES)[number]): string {
  return resolve(folder, name)
}
