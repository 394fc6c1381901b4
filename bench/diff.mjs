/**
 * Times `diff` of two files in the page cache against reading both: `cat a b > /dev/null` without the process, in reads of 512 KiB into one
 * buffer. A ratio of 1 is the speed of the read.
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cast, diff, reorder, save, tensor } from '../dist/index.js'
import { bestOfRounds, report } from './rounds.mjs'

const SHAPE = [64, 128, 56, 56]

export function addDiff(program) {
  program
    .command('diff')
    .description('a comparison of two files, compared with reading both')
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 7)
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure({ rounds, json }) {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-bench-diff-'))
  try {
    const rows = []
    for (const [name, a, b] of await makePairs(folder)) {
      const candidates = { read: () => readBoth(a, b), diff: () => diff(a, b) }
      const { read, diff: compared } = await bestOfRounds(candidates, rounds)
      rows.push({
        case: name,
        'ms read': Math.round(read * 1000),
        'ms diff': Math.round(compared * 1000),
        ratio: Math.round((compared / read) * 100) / 100,
      })
    }
    report(rows, { json })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function makePairs(folder) {
  const values = Float32Array.from({ length: SHAPE.reduce((a, b) => a * b) }, (_, i) => Math.sin(i))
  const plain = tensor(values, { shape: SHAPE, name: 'x' })
  const near = tensor(
    values.map((value) => value * (1 + 1e-6)),
    { shape: SHAPE, name: 'x' },
  )
  const blocked = reorder(plain, 'b_fs_yx_fsv16')
  const files = { plain, copy: plain, near, half: cast(plain, 'float16'), blocked }
  const paths = {}
  for (const [name, content] of Object.entries(files)) {
    paths[name] = join(folder, `${name}.safetensors`)
    await save(paths[name], [content])
  }
  return [
    ['equal bytes', paths.plain, paths.copy],
    ['every value differs', paths.plain, paths.near],
    ['float32 and float16', paths.plain, paths.half],
    ['row_major and b_fs_yx_fsv16', paths.plain, paths.blocked],
  ]
}

function readBoth(...paths) {
  const buffer = new Uint8Array(512 * 1024)
  for (const path of paths) {
    const file = openSync(path, 'r')
    while (readSync(file, buffer) > 0);
    closeSync(file)
  }
}
