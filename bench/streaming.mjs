/**
 * Converts a cached file, compared with a loop that reads and writes blocks of 1 MiB. Both end with fsync, so that the page
 * cache does not hide the cost of writing. Function and loop run in this process, command and loop in processes of their own:
 * the start of a process is most of the time of a small file.
 */
import { execFile } from 'node:child_process'
import { closeSync, fsyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { convert } from '../dist/index.js'
import { BLOCK_BYTES, copyInBlocks } from './block_copy.mjs'
import { bestOfRounds, report } from './rounds.mjs'

const execute = promisify(execFile)
const COMMAND = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const LOOP_URL = new URL('./block_copy.mjs', import.meta.url).href
const LOOP = 'read and write 1 MiB blocks'
const LOOP_PROCESS = `${LOOP}, own process`
const CHANNELS = 64
const EDGE = 128

export function addStreaming(program) {
  program
    .command('streaming')
    .description('convert with and without a reorder, compared with a read and write loop')
    .option('--mib <n>', 'size of the file', Number, 1024)
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 5)
    .option('--layout <name>', 'layout to reorder to', 'b_fs_yx_fsv16')
    .option('--folder <path>', 'folder for the files', tmpdir())
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure({ mib, rounds, layout, folder: parent, json }) {
  const folder = mkdtempSync(join(parent, 'tilework-bench-'))
  try {
    const input = join(folder, 'in.btf')
    const batch = Math.max(1, Math.round((mib * 1024 * 1024) / (CHANNELS * EDGE * EDGE * 4)))
    const byteLength = writeInput(input, [batch, CHANNELS, EDGE, EDGE])
    const output = join(folder, 'out.btf')
    const node = (...args) => execute(process.execPath, args)
    const command = (...options) => node(COMMAND, 'convert', input, output, ...options)
    const loopText = `import(${JSON.stringify(LOOP_URL)}).then((m) => m.copyInBlocks(...process.argv.slice(1)))`
    const best = await bestOfRounds(
      {
        [LOOP]: () => copyInBlocks(input, output),
        'convert(), no change': () => convert(input, output),
        [`convert() to ${layout}`]: () => convert(input, output, { layout }),
        [LOOP_PROCESS]: () => node('-e', loopText, input, output),
        'command convert, no change': () => command(),
        [`command convert --layout ${layout}`]: () => command('--layout', layout),
        'empty Node process': () => node('-e', '0'),
      },
      rounds,
    )
    const rows = Object.entries(best).map(([name, seconds]) => ({
      case: name,
      seconds: round(seconds),
      'GB/s (read + written)': round((2 * byteLength) / seconds / 1e9),
      'ratio to the loop': round(best[LOOP] / seconds),
      'to the loop as a process': round(best[LOOP_PROCESS] / seconds),
    }))
    report(rows, { json })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Writes one float32 tensor without zeros, so that no file system can store it sparsely. */
function writeInput(path, shape) {
  const elements = shape.reduce((product, extent) => product * extent, 1)
  const header = new BigUint64Array([1n, 16n, 4n, 4n, ...shape.map(BigInt)])
  const block = new Uint32Array(BLOCK_BYTES / 4)
  const descriptor = openSync(path, 'w')
  let state = 1
  writeSync(descriptor, header)
  for (let left = elements * 4; left > 0; left -= BLOCK_BYTES) {
    for (let i = 0; i < block.length; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      block[i] = state | 1
    }
    writeSync(descriptor, new Uint8Array(block.buffer, 0, Math.min(left, BLOCK_BYTES)))
  }
  fsyncSync(descriptor)
  closeSync(descriptor)
  return readFileSync(path).byteLength
}

function round(value) {
  return Math.round(value * 1000) / 1000
}
