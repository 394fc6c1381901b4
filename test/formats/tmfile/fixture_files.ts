/** The real tmfiles, kept beside the checkout; tests that need them say so and skip when they are absent. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const folder = resolve(import.meta.dirname, '../../../../shared/fixtures/tmfile')

export const hasFixtures = existsSync(folder)

if (!hasFixtures) console.warn(`skipped: the real tmfiles are not in ${folder}`)

export const FIXTURE_NAMES: readonly string[] = hasFixtures ? readdirSync(folder) : []

export function fixturePath(name: string): string {
  return resolve(folder, name)
}

export function fixtureBytes(name: string): Uint8Array {
  return new Uint8Array(readFileSync(fixturePath(name)))
}
