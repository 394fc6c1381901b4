/**
 * Converts thousands of small files with one command, compared with a shell loop that starts the command once per file. A
 * dozen files are damaged: the command must report them with their codes, and convert the others.
 *
 * The loop runs over a sample, because it takes minutes for all files; all files have about the same size.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { asLayout, open, planReorder } from '../dist/index.js'
import { writeBtf } from '../scripts/btf_file.mjs'
import { generator, seededBytes } from '../scripts/seeded.mjs'
import { report } from './rounds.mjs'

const COMMAND = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
/** A few KiB per file; no file fills its last block of channels. */
const CHANNELS = [3, 7, 19, 21]
const EDGE = 8
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/** Ways to damage a file, with the expected error code and exit code. */
const DAMAGES = [
  { code: 'ERR_TRUNCATED', exit: 2, apply: (path) => truncateSync(path, 100) },
  { code: 'ERR_DTYPE', exit: 2, apply: (path) => setByte(path, 16 + 8, 200) },
  { code: 'ERR_OFFSET_RANGE', exit: 2, apply: (path) => setByte(path, 8 + 6, 1) },
  { code: 'ERR_UNKNOWN_FORMAT', exit: 2, apply: (path) => writeFileSync(path, 'no tensors here') },
]

export function addMany(program) {
  program
    .command('many')
    .description('small files by one command, compared with a shell loop that starts one command per file')
    .option('--files <n>', 'number of files', Number, 2000)
    .option('--damaged <n>', 'number of damaged files', Number, 12)
    .option('--sample <n>', 'number of files in the shell loop', Number, 40)
    .option('--jobs <n>', 'files converted concurrently', Number, 2)
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 3)
    .option('--layout <name>', 'layout to convert to', 'b_fs_yx_fsv16')
    .option('--seed <n>', 'seed of the data', Number, 1)
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure(options) {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-bench-'))
  try {
    const files = makeFiles(join(folder, 'in'), options)
    let [loop, command] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    for (let round = 0; round < options.rounds; round++) {
      const out = (name) => freshFolder(join(folder, name))
      loop = Math.min(loop, runLoop(files, out('loop'), options))
      command = Math.min(command, await runCommand(files, out('out'), options))
    }
    const rates = [loop, command].map((seconds) => 1 / seconds)
    const rows = [
      { case: `shell loop (sample of ${options.sample} files)`, ...row(rates[0], rates[0]) },
      { case: `convert --jobs ${options.jobs} (${files.length} files)`, ...row(rates[1], rates[0]) },
    ]
    report(rows, options)
    if (!options.json) {
      console.log(
        `${options.damaged} damaged files were reported with their codes; all other outputs are right.`,
      )
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function row(rate, loopRate) {
  return {
    'files per second': Math.round(rate * 10) / 10,
    'ratio to the loop': Math.round((rate / loopRate) * 10) / 10,
  }
}

function makeFiles(folder, { files: count, damaged, seed }) {
  mkdirSync(folder)
  const random = generator(seed)
  const damagedIndices = new Set()
  while (damagedIndices.size < Math.min(damaged, count)) damagedIndices.add(Math.floor(random() * count))
  const order = [...damagedIndices]
  return Array.from({ length: count }, (_, i) => {
    const name = `${String(i).padStart(6, '0')}.btf`
    const path = join(folder, name)
    const shape = [1, CHANNELS[i % CHANNELS.length], EDGE, EDGE]
    const bytes = seededBytes(4 * shape[1] * EDGE * EDGE, seed + i)
    writeBtf(path, [{ dtype: 'float32', shape, bytes }])
    const damage = damagedIndices.has(i) ? DAMAGES[order.indexOf(i) % DAMAGES.length] : undefined
    damage?.apply(path)
    return { name, path, shape, bytes, damage }
  })
}

function setByte(path, position, value) {
  const bytes = readFileSync(path)
  bytes[position] = value
  writeFileSync(path, bytes)
}

function freshFolder(path) {
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path)
  return path
}

/** @returns {number} seconds per file */
function runLoop(files, out, { sample, layout }) {
  const chosen = files.filter(({ damage }) => !damage).slice(0, sample)
  const script = `for f in "$@"; do '${process.execPath}' '${COMMAND}' convert "$f" '${out}'/"\${f##*/}" --layout ${layout} || exit 1; done`
  const { seconds, status, stderr } = timed('sh', ['-c', script, 'sh', ...chosen.map(({ path }) => path)])
  if (status !== 0) throw new Error(`The shell loop failed: ${stderr}`)
  return seconds / chosen.length
}

/** @returns {Promise<number>} seconds per file; checks all outputs */
async function runCommand(files, out, { layout, jobs }) {
  const options = ['--out-dir', out, '--layout', layout, '--jobs', String(jobs), '--keep-going', '--json']
  const args = [COMMAND, 'convert', ...files.map(({ path }) => path), ...options]
  const { seconds, status, stdout } = timed(process.execPath, args)
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  checkReport(files, lines, status)
  for (const file of files) await checkOutput(file, join(out, file.name), layout)
  return seconds / files.length
}

function timed(command, args) {
  const started = process.hrtime.bigint()
  const result = spawnSync(command, args, { encoding: 'utf8', maxBuffer: MAX_OUTPUT_BYTES })
  if (result.error) throw result.error
  return { ...result, seconds: Number(process.hrtime.bigint() - started) / 1e9 }
}

/** Every file must have a line, damaged files with their code, and the exit code must match the worst one. */
function checkReport(files, lines, status) {
  const byInput = new Map(lines.filter(({ input }) => input).map((line) => [line.input, line]))
  for (const { path, damage } of files) {
    const line = byInput.get(path)
    const found = line?.error?.code ?? line?.code ?? line?.status
    const expected = damage?.code ?? 'written'
    if (found !== expected) throw new Error(`${path} is reported as ${found}; expected ${expected}`)
  }
  const exit = Math.max(0, ...files.map(({ damage }) => damage?.exit ?? 0))
  if (status !== exit) throw new Error(`the exit code is ${status}; expected ${exit}`)
}

async function checkOutput({ shape, bytes, damage }, path, layout) {
  if (damage) return
  const file = await open(path, { level: 'strict' })
  const stored = await asLayout(file.tensors.at(0), layout, shape).bytes()
  const plan = planReorder({ dtype: 'float32', shape, from: 'row_major', to: layout })
  const expected = new Uint8Array(plan.destinationBytes)
  plan.runSync(bytes, expected)
  const isRight = Buffer.compare(stored, expected) === 0
  file.close()
  if (!isRight) throw new Error(`${path}: the written file has wrong bytes`)
}
