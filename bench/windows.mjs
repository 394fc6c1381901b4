/**
 * Reads a tensor window by window in a runtime without external buffers (Electron): every window is copied, and should cost
 * no more than one copy.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open, save, tensor } from '../dist/index.js'
import { native } from '../scripts/internals.mjs'
import { bestOfRounds, report } from './rounds.mjs'

/** The baseline of a candidate that allocates; the others are compared with a copy into one buffer. */
const COPY_OF = { 'bytes, one buffer per window': 'copy to new memory' }

export function addWindows(program) {
  program
    .command('windows')
    .description('windowed reads without external buffers, compared with a plain copy of the same windows')
    .option('--mib <n>', 'size of the tensor', Number, 256)
    .option('--window <kib>', 'size of a window in KiB', Number, 1024)
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 15)
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure({ mib, window: kib, rounds, json }) {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-bench-'))
  try {
    const path = join(folder, 'in.btf')
    const elements = (mib * 1024 * 1024) / 4
    const values = new Uint32Array(elements).map((_, i) => Math.imul(i, 2654435761))
    await save(path, tensor(values, { dtype: 'uint32', shape: [elements] }))
    writeFileSync(join(folder, 'warm'), '')
    native().setExternalBuffers(false)
    const file = await open(path)
    const rows = await measureFile(file.tensors.at(0), new Uint8Array(values.buffer), kib * 1024, rounds)
    file.close()
    report(rows, { json })
  } finally {
    native().setExternalBuffers(true)
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureFile(stored, memory, windowBytes, rounds) {
  const target = new Uint8Array(windowBytes)
  const { byteLength } = stored.storage
  const each = async (read) => {
    for (let at = 0; at < byteLength; at += windowBytes)
      await read(at, Math.min(at + windowBytes, byteLength))
  }
  const best = await bestOfRounds(
    {
      'copy from memory': () => each((start, end) => target.set(memory.subarray(start, end))),
      'copyToSync, one buffer': () =>
        each((start, end) => stored.copyToSync(target.subarray(0, end - start), { start })),
      'copyTo, one buffer': () =>
        each((start, end) => stored.copyTo(target.subarray(0, end - start), { start })),
      'copy to new memory': () => each((start, end) => memory.slice(start, end)),
      'bytes, one buffer per window': () => each((start, end) => stored.bytes({ start, end })),
    },
    rounds,
  )
  return Object.entries(best).map(([name, seconds]) => ({
    case: name,
    'GB/s': Math.round((byteLength / seconds / 1e9) * 100) / 100,
    'ratio to its copy': Math.round((best[COPY_OF[name] ?? 'copy from memory'] / seconds) * 100) / 100,
  }))
}
