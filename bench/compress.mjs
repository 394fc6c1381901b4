/**
 * Compressing an ONNX model: CPU seconds and peak memory of the process, beside the Python tools that do the same. The Python
 * tools are not dependencies; those that `--python` lacks are named and left out.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeTransformer } from './compress_model.mjs'
import { report } from './rounds.mjs'

const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url))
const COMMAND = pathOf('../dist/cli/main.js')
const USAGE = new URL('usage_at_exit.mjs', import.meta.url).href
const SCRIPT = pathOf('compress.py')

/** Python tools, and the goals for the model of 8 layers: CPU seconds, MiB. */
const TARGETS = {
  fp16: { tools: ['onnxruntime float16', 'onnxconverter-common'], goal: [1, 150] },
  int8: { tools: ['quantize_dynamic'], goal: [1.5, 150] },
  q4: { tools: ['MatMulNBits'], goal: [1, 150] },
  q4f16: { tools: [] },
  qdq: { tools: [] },
  bnb4: { tools: ['MatMulBnb4'], goal: [1.5, 150] },
}

const GOAL_LAYERS = 8

export function addCompress(program) {
  program
    .command('compress')
    .description('compressing an ONNX model, compared with the Python tools')
    .option('--to <name...>', `any of ${Object.keys(TARGETS).join(', ')}`, Object.keys(TARGETS))
    .option(
      '--layers <n>',
      'layers of 50 MB; 8 are the model of the goals, 118 have 6 GB',
      Number,
      GOAL_LAYERS,
    )
    .option('--external', 'values in a file beside the model')
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 3)
    .option('--python <path>', 'Python with onnx and onnxruntime', 'python3')
    .option('--no-peers', 'leave the Python tools out')
    .option('--folder <path>', 'folder for the files', tmpdir())
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure(options) {
  const folder = mkdtempSync(join(options.folder, 'tilework-bench-'))
  try {
    const input = join(folder, 'model.onnx')
    await writeTransformer(input, options)
    const missing = new Set()
    const best = new Map()
    for (let round = 0; round < options.rounds; round++) {
      for (const to of options.to) {
        keepBest(best, to, runCommand(input, join(folder, 'ours.onnx'), to))
        for (const tool of options.peers ? TARGETS[to].tools : []) {
          const usage = missing.has(tool)
            ? undefined
            : runTool(options.python, tool, input, join(folder, 'theirs.onnx'))
          if (usage) keepBest(best, `${to} ${tool}`, usage)
          else missing.add(tool)
        }
      }
    }
    for (const tool of missing) console.error(`skipped: ${options.python} has no ${tool}`)
    report(
      options.to.flatMap((to) => rowsOf(to, best, options)),
      options,
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function keepBest(best, key, usage) {
  const before = best.get(key)
  const peakMib = Math.max(usage.peakMib, before?.peakMib ?? 0)
  const cpuSeconds = Math.min(usage.cpuSeconds, before?.cpuSeconds ?? Number.POSITIVE_INFINITY)
  best.set(key, { ...usage, cpuSeconds, peakMib })
}

function runCommand(input, output, to) {
  const usage = `${output}.usage`
  const args = ['--import', USAGE, COMMAND, 'compress', input, '--to', to, '-o', output]
  const { status, stderr } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    env: { ...process.env, TILEWORK_USAGE: usage },
  })
  if (status !== 0) throw new Error(stderr)
  return { ...JSON.parse(readFileSync(usage, 'utf8')), ...removed(output) }
}

/** @returns undefined where the tool is not installed */
function runTool(python, tool, input, output) {
  const { status, stdout, stderr, error } = spawnSync(python, [SCRIPT, tool, input, output], {
    encoding: 'utf8',
  })
  if (status === 3 || error?.code === 'ENOENT') return undefined
  if (status !== 0) throw new Error(stderr)
  return { ...JSON.parse(stdout.trim().split('\n').at(-1)), ...removed(output) }
}

/** Size of a model with its values, which are removed. */
function removed(path) {
  let megabytes = 0
  for (const file of [path, `${path}_data`]) {
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
    megabytes += size / 1e6
    rmSync(file, { force: true })
  }
  return { megabytes }
}

function rowsOf(to, best, { layers }) {
  const { tools, goal } = TARGETS[to]
  const row = (tool, { cpuSeconds, peakMib, megabytes }) => ({
    to,
    tool,
    'CPU s': Number(cpuSeconds.toFixed(2)),
    'peak MiB': Math.round(peakMib),
    'result MB': Number(megabytes.toFixed(1)),
  })
  const ours = row('tilework', best.get(to))
  const withGoal = goal && layers === GOAL_LAYERS ? { ...ours, goal: `${goal[0]} s, ${goal[1]} MiB` } : ours
  const others = tools.filter((tool) => best.has(`${to} ${tool}`))
  return [withGoal, ...others.map((tool) => row(tool, best.get(`${to} ${tool}`)))]
}
