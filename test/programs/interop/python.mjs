/** Runs the Python half of the interoperability tests. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'

const PYTHON = 'python3'

/**
 * @param {string} probe - Python code that fails where a package is missing or too old
 * @returns {string | undefined} the reason why the test cannot run
 */
export function missingPython(probe) {
  const { status, stderr, error } = spawnSync(PYTHON, ['-c', probe], { encoding: 'utf8' })
  if (error) return `${PYTHON} cannot be run (${error.code})`
  return status === 0 ? undefined : (stderr.trim().split('\n').at(-1) ?? `${PYTHON} failed`)
}

/** Runs a script that fails where it finds a difference. Returns its output. */
export function runPython(args) {
  const { status, stdout, stderr } = spawnSync(PYTHON, args, { encoding: 'utf8' })
  assert.equal(status, 0, `Python found a difference:\n${stderr}`)
  return stdout
}
