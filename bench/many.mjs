/**
 * Thousands of small files with one command, against a shell loop that starts the command once a file. A dozen of the
 * files are damaged: they are reported, with their codes, and the others are written.
 *
 * The loop runs over a sample, whose rate is taken for all files: it would need minutes for all, and each file of the
 * same size takes it as long as the next.
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
/** A few KiB, no two alike, none that fills its last block of channels. */
const CHANNELS = [3, 7, 19, 21]
const EDGE = 8
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/** Ways to damage a file, with the code that it is reported by and the exit code of a run whose worst it is. */
const DAMAGES = [
  { code: 'ERR_TRUNCATED', exit: 2, apply: (path) => truncateSync(path, 100) },
  { code: 'ERR_DTYPE', exit: 2, apply: (path) => setByte(path, 16 + 8, 200) },
  { code: 'ERR_OFFSET_RANGE', exit: 2, apply: (path) => setByte(path, 8 + 6, 1) },
  { code: 'ERR_UNKNOWN_FORMAT', exit: 2, apply: (path) => writeFileSync(path, 'no tensors here') },
]

export function addMany(program) {
  program
    .command('many')
    .description('small files by one command, against a shell loop that starts the command once a file')
    .option('--files <n>', 'number of files', Number, 2000)
    .option('--damaged <n>', 'how many of them are damaged', Number, 12)
    .option('--sample <n>', 'files of the shell loop', Number, 40)
    .option('--jobs <n>', 'files worked on at a time', Number, 2)
    .option('--rounds <n>', 'rounds; the best counts', Number, 3)
    .option('--layout <name>', 'layout to convert to', 'b_fs_yx_fsv16')
    .option('--seed <n>', 'of the data', Number, 1)
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
      { case: `shell loop (${options.sample} files, rate taken for all)`, ...row(rates[0], rates[0]) },
      { case: `convert --jobs ${options.jobs} (${files.length} files)`, ...row(rates[1], rates[0]) },
    ]
    report(rows, options)
    if (!options.json) {
      console.log(`${options.damaged} damaged files reported with their codes, all others read back right.`)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function row(rate, loopRate) {
  return {
    'files a second': Math.round(rate * 10) / 10,
    'ratio to the loop': Math.round((rate / loopRate) * 10) / 10,
  }
}

function makeFiles(folder, { files: count, damaged, seed }) {
  mkdirSync(folder)
  const random = generator(seed)
  const places = new Set()
  while (places.size < Math.min(damaged, count)) places.add(Math.floor(random() * count))
  const order = [...places]
  return Array.from({ length: count }, (_, i) => {
    const name = `${String(i).padStart(6, '0')}.btf`
    const path = join(folder, name)
    const shape = [1, CHANNELS[i % CHANNELS.length], EDGE, EDGE]
    const bytes = seededBytes(4 * shape[1] * EDGE * EDGE, seed + i)
    writeBtf(path, [{ dtype: 'float32', shape, bytes }])
    const damage = places.has(i) ? DAMAGES[order.indexOf(i) % DAMAGES.length] : undefined
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

/** @returns {number} seconds a file */
function runLoop(files, out, { sample, layout }) {
  const chosen = files.filter(({ damage }) => !damage).slice(0, sample)
  const script = `for f in "$@"; do '${process.execPath}' '${COMMAND}' convert "$f" '${out}'/"\${f##*/}" --layout ${layout} || exit 1; done`
  const { seconds, status, stderr } = timed('sh', ['-c', script, 'sh', ...chosen.map(({ path }) => path)])
  if (status !== 0) throw new Error(`The shell loop failed: ${stderr}`)
  return seconds / chosen.length
}

/** @returns {Promise<number>} seconds a file, once everything that was written has been read back */
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

/** Every file has its line, the damaged ones with their code, and the exit code is that of the worst. */
function checkReport(files, lines, status) {
  const byInput = new Map(lines.filter(({ input }) => input).map((line) => [line.input, line]))
  for (const { path, damage } of files) {
    const line = byInput.get(path)
    const found = line?.error?.code ?? line?.code ?? line?.status
    const expected = damage?.code ?? 'written'
    if (found !== expected) throw new Error(`${path}: reported as ${found}, not as ${expected}`)
  }
  const exit = Math.max(0, ...files.map(({ damage }) => damage?.exit ?? 0))
  if (status !== exit) throw new Error(`The exit code is ${status}, not ${exit}`)
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
  if (!isRight) throw new Error(`${path}: the written file has other bytes`)
}
