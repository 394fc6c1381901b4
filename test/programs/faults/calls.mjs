/**
 * Lets the n-th call of the system fail in a save or a conversion, for every n: the error has the right code, the old
 * file or the new one is there, whole, nothing else is left, no descriptor leaks, and the next save works.
 *
 * Compiles a library for LD_PRELOAD; `failing_calls_child.mjs` does the work with it.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))

export function testFailingCalls({ folder, fail, note, rounds }) {
  if (process.platform !== 'linux')
    return console.log('skip   failing calls: they require LD_PRELOAD of Linux')
  const library = join(folder, 'failing_calls.so')
  const compiler = process.env.CC ?? 'cc'
  const options = ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Werror', '-fvisibility=hidden']
  const built = spawnSync(compiler, [...options, here('failing_calls.c'), '-o', library, '-ldl'], {
    encoding: 'utf8',
  })
  if (built.error) return console.log(`skip   failing calls: no C compiler "${compiler}"`)
  if (built.status !== 0) return fail(`failing calls: ${built.stderr}`)
  const work = join(folder, 'calls')
  mkdirSync(work)
  const { status, signal, stdout } = spawnSync(
    process.execPath,
    ['--expose-gc', here('failing_calls_child.mjs'), work, String(rounds)],
    { env: { ...process.env, LD_PRELOAD: library }, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
  )
  for (const line of stdout.split('\n').filter(Boolean)) {
    if (line.startsWith('ok ')) note(line.slice(3))
    else fail(line)
  }
  if (status !== 0) fail(`failing calls: the process ended with ${signal ?? status}`)
}
