/**
 * Simplifying the models of PyPI packages beside the Python tools that do the same: nodes left, whether all bits stay, CPU seconds
 * and peak memory of the whole command. The tools are not dependencies; a model or tool that fails is counted and named.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url))
const OURS = 'tilework'
const FUSED = 'tilework --fuse'

export function addSimplify(program) {
  program
    .command('simplify')
    .description('simplifying ONNX models, compared with the Python tools')
    .argument('[part...]', 'only models whose names have one of these parts')
    .option('--python <path>', 'Python with onnx, onnxruntime and the tools', 'python3')
    .option('--from <path>', 'rows that an earlier run has printed with --json')
    .option('--json', 'print the rows of all models, as lines of JSON')
    .action(measure)
}

async function measure(parts, options) {
  const rows = options.from ? readLines(options.from) : await run(parts, options)
  if (options.json) for (const row of rows) console.log(JSON.stringify(row))
  else report(rows)
}

function readLines(path) {
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
}

async function run(parts, { python }) {
  const args = [pathOf('simplify.py'), 'all', pathOf('../dist/cli/main.js'), ...parts]
  const child = spawn(python, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const rows = []
  for await (const line of createInterface({ input: child.stdout })) rows.push(JSON.parse(line))
  return rows
}

/** A result counts if the file does not grow and every bit is equal; with the fusions, if it is close. */
function isExact({ outcome, grown }) {
  return outcome === 'equal' && !grown
}

function isSmallAndValid(row) {
  return isValid(row) && !row.grown
}

function isValid({ outcome }) {
  return outcome === 'equal' || outcome === 'close'
}

function report(rows) {
  for (const { left_out: reason } of rows) if (reason !== undefined) console.log(`left out: ${reason}`)
  const models = new Map()
  for (const row of rows.filter(({ model }) => model)) {
    models.set(row.model, [...(models.get(row.model) ?? []), row])
  }
  const tools = [...new Set(rows.flatMap(({ tool }) => tool ?? []))].filter((tool) => tool !== 'original')
  console.log(`${models.size} models`)
  console.table(tools.map((tool) => summary(tool, models)))
  beside(OURS, isExact, models)
  beside(FUSED, isSmallAndValid, models)
}

function summary(tool, models) {
  const own = [...models.values()].flatMap((rows) => rows.filter((row) => row.tool === tool))
  const ratios = own.filter(isValid).map((row) => row.nodes / original(models.get(row.model)).nodes)
  return {
    tool,
    runs: own.filter(({ outcome }) => isValid({ outcome }) || outcome === 'wrong').length,
    equal: own.filter(({ outcome }) => outcome === 'equal').length,
    close: own.filter(({ outcome }) => outcome === 'close').length,
    grown: own.filter(({ grown }) => grown).length,
    'nodes left': geometricMean(ratios).toFixed(3),
    'CPU seconds': own.reduce((sum, { seconds }) => sum + seconds, 0).toFixed(1),
    'largest MiB': Math.round(Math.max(...own.map(({ bytes }) => bytes)) / 2 ** 20),
  }
}

function original(rows) {
  return rows.find(({ tool }) => tool === 'original')
}

/** How the nodes of `tool` compare with the best of the peers' results that count, and where a peer has less. */
function beside(tool, counts, models) {
  const ratios = []
  const more = []
  for (const [model, rows] of models) {
    const own = rows.find((row) => row.tool === tool)
    const peers = rows.filter((row) => counts(row) && row.tool !== OURS && row.tool !== FUSED)
    if (!isValid(own)) more.push(`${model}: ${own.outcome}`)
    if (!isValid(own) || peers.length === 0) continue
    const best = peers.reduce((least, row) => (row.nodes < least.nodes ? row : least))
    ratios.push(Math.max(own.nodes, 1) / Math.max(best.nodes, 1))
    if (own.nodes > best.nodes) more.push(`${model}: ${own.nodes} nodes, ${best.tool} ${best.nodes}`)
  }
  const least = ratios.filter((ratio) => ratio <= 1).length
  console.log(
    `${tool}: at or below the best peer in ${least} of ${ratios.length}, geometric mean ${geometricMean(ratios).toFixed(3)}`,
  )
  for (const line of more) console.log(`  ${line}`)
}

function geometricMean(values) {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(Math.max(value, 1e-9)), 0) / values.length)
}
