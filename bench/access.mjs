/**
 * Times the memory accesses of a transpose without the transpose itself, as a ratio to memcpy: the upper bound for a reorder
 * with plain 32-byte loads and stores (bench/native/access_bench.cc).
 */
import { buildPrograms, roundsOf, runProgram } from './native_program.mjs'
import { report } from './rounds.mjs'

/** The shapes of bench/reorder_cases.mjs that divide into whole tiles. */
const SHAPES = { A: { channels: 32, pixels: 32 * 32 }, B: { channels: 64, pixels: 112 * 112 } }
const ELEMENT_BYTES = { '32 bit': 4, '16 bit': 2 }
const BLOCKS = { nhwc: undefined, fsv16: 16, fsv32: 32 }

export function addAccess(program) {
  program
    .command('access')
    .description('memory accesses of transposes, without the transpose, compared with plain copies')
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 200)
    .option('--json', 'print JSON')
    .action(measure)
}

function measure({ rounds, json }) {
  buildPrograms()
  const cases = Object.entries(BLOCKS).flatMap(([layout, block]) =>
    Object.entries(ELEMENT_BYTES).flatMap(([elements, bytes]) =>
      Object.entries(SHAPES).flatMap(([shape, { channels, pixels }]) =>
        [1, 0].map((toPixels) => ({
          case: `${toPixels ? `planes to ${layout}` : `${layout} to planes`}, ${elements} ${shape}`,
          line: [block ?? channels, channels / (block ?? channels), pixels, bytes, toPixels],
          rounds: roundsOf(2 * channels * pixels * bytes, rounds),
        })),
      ),
    ),
  )
  const input = cases.map(({ line, rounds: each }) => `${line.join(' ')} ${each}\n`).join('')
  const { results } = runProgram('access_bench', [], input)
  const rows = results.map(({ moves, memcpy, streaming }, i) => ({
    case: cases[i].case,
    'GB/s': Math.round(moves * 10) / 10,
    'ratio to memcpy': Math.round((moves / memcpy) * 100) / 100,
    'ratio to streaming copy': Math.round((moves / streaming) * 100) / 100,
  }))
  report(rows, { json })
}
