/**
 * `npm run test:review-attacks -- [--rounds N] [--only NAME…]`: runs the programs that reviewers wrote against the library, which
 * lie in `../shared/review/attacks` beside the checkout, and prints a line for each. Without them it says so and ends.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Command } from 'commander'
import { ENTRIES } from '../../scripts/entries.mjs'
import { ROOT, seconds } from '../../scripts/toolchain.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'

const SHARED = join(ROOT, '..', 'shared')
const PROGRAMS_FOLDER = join(SHARED, 'review', 'attacks')
const CLI = join(ROOT, 'dist', 'cli', 'main.js')
/** Names in the programs that have another one today, and the entry with it. */
const RENAMED = {
  fromDense: ['sparseFromDense', 'index'],
  encodeTensor: ['encodeTensorProto', 'onnx'],
  decodeTensor: ['decodeTensorProto', 'onnx'],
}
/** A program that takes longer hangs. */
const LIMIT_MS = 20 * 60_000
const TRANSFERS = 'save saveplain stats toTA ser copyTo fileCopyTo fileReorderCopyTo'.split(' ')
/** These await a call only after collections, and it may be refused before. */
const TRANSFER_FLAGS = ['--unhandled-rejections=warn']
const IS_CLEAN_RACE = /"secret":0,"fault":0/
const IS_CLEAN_PAIR = /mixed: 0, nodata: 0, fail: 0, refused: 0/

/**
 * What each is run with, what its output must contain, and what it must not. A bomb that is `SLOW` is so on a busy machine as
 * well, and one above the memory bound of `open` and `check` may be so by its edits, so both are only counted. `judge` returns what
 * is wrong with an output.
 */
const PROGRAMS = [
  { name: 'bombs', bad: /^!! (DIED|ERR).*/m, counted: /^!! (MEM|SLOW)/gm },
  { name: 'files', bad: /^.*(FAULT|HANG).*/m },
  ...['ext', 'shard'].map((kind) => ({
    name: 'kill',
    args: (round) => [kind, '20', String(round)],
    good: /"bad":0/,
    bad: /^(BAD|save failed).*/m,
  })),
  { name: 'perm', good: /after replace 640 1000:1000[\s\S]*symlink kept true[\s\S]*dangling/ },
  // Formats that need names make one for a tensor without. The program counts these three.
  {
    name: 'proto',
    good: /proto done bad 3$/m,
    bad: /^(LOST(?! (npz "" arr_0|(onnx|tmfile) "" tensor_0)$)|FAULT|SLIP|POLLUTED|PHANTOM).*/m,
  },
  { name: 'proxy_tensor', bad: /^.*!!.*/m },
  { name: 'seeds', good: /onnx \d/ },
  { name: 'surrogate', good: /^(\w+ TileworkError ERR_\w+.*\n){4}$/ },
  ...['symrace', 'symrace_dirsym', 'symrace_hard'].map((name) => ({ name, good: IS_CLEAN_RACE })),
  { name: 'terminal', good: /files \d+ done/, bad: /^!!.*/m },
  ...['dst', 'src'].map((side) => ({
    name: 'transfer_gc',
    flags: TRANSFER_FLAGS,
    args: () => [side],
    good: /survived/,
  })),
  ...TRANSFERS.map((kind) => ({
    name: 'transfer_others',
    flags: TRANSFER_FLAGS,
    args: () => [kind],
    good: /survived/,
    bad: /^FAULT.*/m,
  })),
  ...['ext', 'shard', 'plain'].map((kind) => ({
    name: 'two_writers',
    args: () => [kind, '5'],
    good: IS_CLEAN_PAIR,
  })),
  // It awaits calls one after the other, and lists those that fail before their turn as unhandled (UNH).
  ...['guard', 'read'].map((mode) => ({
    name: 'underneath',
    args: (round) => [mode, String(round), '30'],
    good: /BAD \[(\["UNH TileworkError: [^"]*",1\],?)*\]$/m,
  })),
  {
    name: 'inspect_many',
    args: () => ['130000', 'w/many.safetensors'],
    command: ['inspect', 'w/many.safetensors'],
  },
  { name: 'unwritten_bytes', good: /^(.* unwritten bytes: 0 .*\n){6}$/ },
  {
    name: 'large_reorders',
    args: (round) => [String(round), '20'],
    good: /^(\d+) of \1 right/m,
    bad: /^WRONG.*/m,
  },
  { name: 'constant_tail_bits', judge: hasZeroTails },
  { name: 'one_byte_chunks', args: () => ['4'], good: /^ERR_\w+/m, judge: isBoundedByBytes },
  { name: 'image_proxies', good: /^(\w+ (ok|ERR_\w+)\n){8}$/, bad: /^.*NOT-TE.*/m },
  // The worker's side of it is in test/queue/convert_job.test.ts: this one converts without a limit, and aborts itself.
  {
    name: 'output_limit',
    good: /quantize blockSize 0: ERR_ARGUMENT\nconvert quantizeTo blockSize 0: ERR_ARGUMENT/,
  },
  // Records that share bytes are refused.
  {
    name: 'mkbtfsame',
    args: () => ['300000', 'w/same.btf'],
    command: ['convert', 'w/same.btf', 'w/same.npz'],
    exitCode: 2,
    good: /ERR_OVERLAP/,
  },
]

/** Bytes that `one_byte_chunks` receives, and an empty process as it prints its memory, in MiB. */
const RECEIVED_MIB = 4e6 / 2 ** 20
const EMPTY_PROCESS_MIB = 64

function isBoundedByBytes(output) {
  const peak = Number(/^peak rss MiB (\d+) /m.exec(output)?.[1])
  const limit = 2 * RECEIVED_MIB + 64 + EMPTY_PROCESS_MIB
  return peak < limit ? undefined : `peak memory is ${peak} MiB; the limit is ${Math.round(limit)}`
}

/** Each line has the bytes three times, and equal digests. */
function hasZeroTails(output) {
  const line = /expected (\w+) got (\w+) materialized (\w+) digests equal: (\w+)/
  const lines = output.split('\n').filter((each) => each.includes('digests equal'))
  const wrong = lines.find((each) => {
    const [, expected, got, materialized, areEqual] = line.exec(each) ?? []
    return expected === undefined || got !== expected || materialized !== expected || areEqual !== 'true'
  })
  return lines.length === 5 ? wrong : `${lines.length} lines of 5`
}

const names = [...new Set(PROGRAMS.map(({ name }) => name))]
const { rounds, only } = new Command('npm run test:review-attacks --')
  .description('Runs the programs that reviewers wrote against the library.')
  .option('--rounds <n>', 'runs of each program', Number, 10)
  .option('--only <name...>', names.join(', '), names)
  .parse()
  .opts()

const workFolder = makeWorkFolder('attacks')
if (!existsSync(PROGRAMS_FOLDER)) console.log(`review attacks: skipped, ${PROGRAMS_FOLDER} does not exist`)
else process.exitCode = runAll(PROGRAMS.filter(({ name }) => only.includes(name)))

function runAll(programs) {
  let failed = 0
  for (const program of programs) {
    const started = performance.now()
    const faults = []
    let counted = 0
    for (let round = 1; round <= rounds; round++) {
      const run = runOnce(program, round)
      if (run.fault) faults.push(`run ${round}: ${run.fault}`)
      counted += run.counted
    }
    const title = [program.name, ...(program.args?.('N') ?? [])].join(' ')
    const notes = counted > 0 ? `, ${counted} lines MEM or SLOW` : ''
    const result = faults.length === 0 ? 'ok    ' : 'FAILED'
    console.log(
      `${result}  ${title}: ${rounds - faults.length} of ${rounds} runs clean${notes} (${seconds(started)})`,
    )
    for (const fault of faults) console.log(`        ${fault}`)
    failed += faults.length
  }
  console.log(`review attacks: ${failed === 0 ? 'clean' : `${failed} runs failed`}`)
  return failed === 0 ? 0 : 1
}

/** @returns {{ fault?: string, counted: number }} */
function runOnce(program, round) {
  const { name, flags = [], args = () => [], command, exitCode = 0, good, bad, counted, judge } = program
  const folder = join(workFolder, 'run')
  rmSync(folder, { recursive: true, force: true })
  // Programs write into the first, and `underneath` into the second, which it does not make.
  mkdirSync(join(folder, 'w', 'ul'), { recursive: true })
  symlinkSync(SHARED, join(folder, 'SHARED'))
  const line = [join(PROGRAMS_FOLDER, `${name}.mjs`), ...args(round)]
  let result = runNode(folder, ['--expose-gc', ...flags, ...line])
  if (command && result.status === 0) result = runNode(folder, [CLI, ...command])
  const { status, signal, output } = result
  const found = bad?.exec(output)?.[0] ?? judge?.(output)
  const isGood = good === undefined || good.test(output)
  const end = signal ?? `exit code ${status}`
  const lastLine = output.trimEnd().split('\n').at(-1)
  const isClean = status === (command ? exitCode : 0) && found === undefined && isGood
  return {
    ...(!isClean && { fault: `${end}: ${(found ?? lastLine).slice(0, 300)}` }),
    counted: counted ? [...output.matchAll(counted)].length : 0,
  }
}

/** Every public name in one module, as when the programs were written, and those that have another name now. */
function writeEntry(folder) {
  const urlOf = (name) => JSON.stringify(pathToFileURL(join(ROOT, 'dist', `${name}.js`)).href)
  const lines = ENTRIES.map((name) => `export * from ${urlOf(name)}`)
  for (const [old, [name, entry]] of Object.entries(RENAMED))
    lines.push(`export { ${name} as ${old} } from ${urlOf(entry)}`)
  const path = join(folder, 'entry.mjs')
  writeFileSync(path, lines.join('\n'))
  return pathToFileURL(path).href
}

function runNode(cwd, args) {
  const env = { ...process.env, TILEWORK_ENTRY: writeEntry(cwd), TILEWORK_CLI: CLI, NO_COLOR: '1' }
  const options = { cwd, env, encoding: 'utf8', timeout: LIMIT_MS, maxBuffer: 2 ** 28 }
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, args, options)
  return { status, signal, output: stdout + stderr }
}
