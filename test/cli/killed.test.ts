/**
 * A run over many files that is killed (SIGKILL) at random moments and started again ends with the bytes of a run that
 * nobody disturbed. Runs what `npm run build:lib` built.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { serialize, tensor } from '../../lib/index.js'
import { runCli } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const isBuilt = existsSync(MAIN)
if (!isBuilt) console.log(`skipped: the command line is not built (${MAIN}); run "npm run build:all"`)

const FILES = 60
const ROUNDS = 5
const SEED = 20240607

const inFolder = temporaryFolder()
const IN = inFolder('in')
const OUT = inFolder('out')
const UNDISTURBED = inFolder('undisturbed')

const convertTo = (out: string): string[] => [
  ...['convert', join(IN, '*.btf'), '--out-dir', out],
  ...['--layout', 'b_fs_yx_fsv16', '--jobs', '2', '--json'],
]
const visible = (folder: string): string[] => readdirSync(folder).filter((name) => !name.startsWith('.'))
const strays = (folder: string): string[] =>
  readdirSync(folder).filter((name) => name.endsWith('.tilework-tmp'))

const isComplete = (name: string): boolean =>
  readFileSync(join(OUT, name)).equals(readFileSync(join(UNDISTURBED, name)))

/** Numbers in [0, 1), always the same ones (Lehmer's generator, with the factor of Park and Miller). */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48271) % 2147483647
    return state / 2147483647
  }
}

/** Starts a run and kills it a moment after it has reported `lines` files; false when it ended before. */
async function runAndKill(lines: number, moment: number): Promise<boolean> {
  const child = spawn(process.execPath, [MAIN, ...convertTo(OUT)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  let reported = 0
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes('"summary"')) break
    if (++reported < lines) continue
    await sleep(moment)
    child.kill('SIGKILL')
    break
  }
  const [, signal] = (await exited) as [number | null, string | null]
  return signal === 'SIGKILL'
}

describe.skipIf(!isBuilt)('a run over many files that is killed', () => {
  let kills = 0

  beforeAll(async () => {
    mkdirSync(IN)
    for (let index = 0; index < FILES; index++) {
      const values = Float32Array.from(
        { length: 2 * 19 * 50 * 7 },
        (_, position) => position + 10_000 * index,
      )
      const bytes = await serialize([tensor(values, { shape: [2, 19, 50, 7] })])
      writeFileSync(join(IN, `${String(index).padStart(3, '0')}.btf`), bytes)
    }
    await runCli(convertTo(UNDISTURBED))
  })

  it('leaves only whole files each time, and the last run completes them', async () => {
    const random = generator(SEED)
    for (let round = 0; round < ROUNDS; round++) {
      if (await runAndKill(1 + Math.floor(random() * 5), random() * 8)) kills++
      for (const name of visible(OUT)) {
        expect(isComplete(name), `${name}, round ${round}`).toBe(true)
      }
    }
    expect(kills).toBeGreaterThan(0)
    const last = await runCli(convertTo(OUT))
    expect({ code: last.code, stderr: last.stderr }).toEqual({ code: 0, stderr: '' })
    expect(visible(OUT)).toEqual(visible(UNDISTURBED))
    for (const name of visible(OUT)) {
      expect(isComplete(name), name).toBe(true)
    }
    const { summary } = JSON.parse((await runCli(convertTo(OUT))).stdout.trim().split('\n').at(-1)!)
    expect(summary).toMatchObject({ written: 0, skipped: FILES, failed: 0 })
  })

  it('leaves no stray file when it has been completed', () => {
    expect(strays(OUT)).toEqual([])
  })
})
