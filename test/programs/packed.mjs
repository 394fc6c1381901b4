/** What the programs that test the packed package share: packing it, and running commands that must succeed. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT, seconds } from '../../scripts/toolchain.mjs'

/**
 * Packs the package into `folder`, as a user of a checkout does: `scripts/prepack.mjs` builds a binary where there is none.
 * @param {{ keepPrebuilds: boolean }} options - whether binaries that were built earlier are packed as they are
 * @returns {string} path of the tarball
 */
export function pack(folder, { keepPrebuilds }) {
  if (!keepPrebuilds) run('npm', ['run', 'prebuild'], { stdio: 'inherit' })
  run('npm', ['pack', '--pack-destination', folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [name] = readdirSync(folder).filter((file) => file.endsWith('.tgz'))
  return join(folder, name)
}

/** Runs `test` and prints its name and time. */
export async function step(name, test) {
  const started = performance.now()
  const note = await test()
  console.log(`ok  ${name} (${note === undefined ? '' : `${note}, `}${seconds(started)})`)
}

/** Standard output of a command; throws with its whole output when it fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 28, ...options })
  const output = `${result.stdout ?? ''}${result.stderr ?? ''}`
  assert.equal(
    result.status,
    0,
    `${command} ${args.join(' ')}: ${result.error?.message ?? result.status}\n${output}`,
  )
  return result.stdout ?? ''
}

/** Path of a command that a development dependency installs. */
export function bin(name) {
  return join(ROOT, 'node_modules', '.bin', name)
}
