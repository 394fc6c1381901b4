/** The process itself: exit codes, a reader that goes away, interruption. Runs what `npm run build:lib` built. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from './temporary_folder.js'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const isBuilt = existsSync(MAIN)
if (!isBuilt) console.log(`skipped: the command line is not built (${MAIN}); run "npm run build:all"`)

const inFolder = temporaryFolder()

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
}

async function end(child: ChildProcess): Promise<Ended> {
  let stdout = ''
  let stderr = ''
  child.stdout!.on('data', (text) => {
    stdout += text
  })
  child.stderr!.on('data', (text) => {
    stderr += text
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr }
}

/** A BTF file with one float32 tensor of zeros, which takes no room on the disk. */
function writeZeros(path: string, shape: readonly number[]): void {
  const header = new BigUint64Array(4 + shape.length)
  header.set([1n, 16n, BigInt(shape.length), 4n, ...shape.map(BigInt)])
  writeFileSync(path, new Uint8Array(header.buffer))
  const elements = shape.reduce((product, extent) => product * extent, 1)
  truncateSync(path, header.byteLength + elements * 4)
}

/** The temporary file says that writing has begun; on Linux it may have no name, and then only its descriptor shows it. */
function isWritingTo(folder: string, { pid }: ChildProcess): boolean {
  if (readdirSync(folder).length > 0) return true
  const descriptors = `/proc/${pid}/fd`
  if (!existsSync(descriptors)) return false
  return readdirSync(descriptors).some((number) => {
    try {
      return readlinkSync(`${descriptors}/${number}`).startsWith(folder)
    } catch {
      return false
    }
  })
}

describe.skipIf(!isBuilt)('the process', () => {
  it('returns the exit code and writes to the right streams', async () => {
    const good = await end(start(['layout', 'b_fs_yx_fsv16', '--shape', '1,1', '--json']))
    expect(good).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(good.stdout)).toMatchObject({ elements: 16 })
    const wrong = await end(start(['layout', 'nonsense']))
    expect(wrong).toMatchObject({ code: 64, stdout: '' })
    expect(wrong.stderr).toMatch(/^tilework: ERR_LAYOUT_NAME: /)
  })

  it('writes all of a long result into a pipe', async () => {
    const { code, stdout } = await end(
      start(['layout', 'bfyx', '--shape', '1,1,300,1000', '--offsets', '--json']),
    )
    expect(code).toBe(0)
    expect(JSON.parse(stdout).offsets).toHaveLength(300_000)
  })

  it('is quiet when the reader of its output is gone', async () => {
    const child = start(['layout', 'bfyx', '--shape', '1,1,300,1000', '--offsets'])
    child.stdout!.once('data', () => child.stdout!.destroy())
    expect(await end(child)).toMatchObject({ code: 0, stderr: '' })
  })

  it('continues to write many files when the reader of its output goes away', async () => {
    const folder = inFolder('unread')
    mkdirSync(folder)
    for (let index = 0; index < 30; index++) writeZeros(join(folder, `${index}.btf`), [2, 3])
    const output = inFolder('unread output')
    const child = start(['convert', join(folder, '*.btf'), '--out-dir', output, '--json'])
    child.stdout!.once('data', () => child.stdout!.destroy())
    expect(await end(child)).toMatchObject({ code: 0, stderr: '' })
    expect(readdirSync(output)).toHaveLength(31)
  })

  it('reads a list of inputs from stdin', async () => {
    const input = inFolder('listed.btf')
    writeZeros(input, [2, 3])
    const output = inFolder('listed output')
    const child = spawn(process.execPath, [MAIN, 'convert', '-', '-0', '--out-dir', output], {
      stdio: 'pipe',
    })
    const ended = end(child)
    child.stdin.end(`${input}\0`)
    expect(await ended).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(/^Wrote 1 file, .*; 0 skipped, 0 failed\.\n$/),
    })
    expect(readdirSync(output)).toContain('listed.btf')
  })

  // Windows ends a process that another one sends a signal to.
  it.skipIf(process.platform === 'win32')(
    'ends an interrupted conversion with 130 and leaves no file',
    async () => {
      const input = inFolder('zeros.btf')
      writeZeros(input, [64, 64, 128, 128])
      const folder = inFolder('output')
      mkdirSync(folder)
      const child = start(['convert', input, '--out-dir', folder, '--layout', 'byxf'])
      const ended = end(child)
      while (!isWritingTo(folder, child) && child.exitCode === null) await sleep(2)
      child.kill('SIGINT')
      const { code, stderr } = await ended
      expect(stderr).toMatch(/^tilework: ERR_ABORTED: /)
      expect(code).toBe(130)
      expect(readdirSync(folder)).toEqual([])
    },
  )
})
