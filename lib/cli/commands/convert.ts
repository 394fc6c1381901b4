/**
 * `tilework convert`: selects tensors, declares their current layout (`--from-layout`), reorders, casts and writes them. Prints
 * the command that undoes a change of layout, because the file format may not be able to store the layout.
 */
import { existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, extname, join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import {
  type ConvertResult,
  convert as convertFile,
  convertMany as convertFiles,
  type FileOutcome,
  parseLayout,
  type Shard,
  TileworkError,
} from '../../index.js'
import {
  checkConvertOptions,
  isPattern,
  schedulerShard,
  timeLeft,
  unknownLayoutNote,
} from '../../internal.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { addReadOptions, inputError, isFolder, openInput } from '../files/open_input.js'
import { formatBytes, formatCount } from '../text/byte_count.js'
import { findingNotices } from '../text/finding_line.js'
import { graphLines } from '../text/graph_lines.js'
import { lossesLine } from '../text/losses_line.js'
import { wholeNumber } from '../text/parse_number.js'
import { numberList } from '../text/parse_shape.js'
import { printable, printJson } from '../text/printable.js'
import { type Progress, startProgress } from '../text/progress.js'
import { rawItemsLine } from '../text/raw_items_line.js'
import { shellQuote } from '../text/shell_quote.js'
import type { Terminal } from '../text/terminal.js'
import { convertMany } from './convert_many.js'
import {
  type ConvertFlags,
  checkFlags,
  libraryOptions,
  manyFlags,
  parseDtype,
  parseQuantize,
  selectsTensors,
  undoCommands,
  writtenExitCode,
} from './convert_options.js'
import { collectStaticShape } from './edit_arguments.js'
import { metricsOption } from './metrics_option.js'
import { addOutputOptions, deadlineOption, replaceGraphOption } from './output_options.js'
import { UndoFile } from './undo_file.js'
import { addVerifyOptions, refusalLine, type Verification, Verifier, verificationLines } from './verify.js'
import { verifyConversion } from './verify_conversion.js'

const EXAMPLES = `
Examples:
  tilework convert model.btf blocked.btf --layout b_fs_yx_fsv16
  tilework convert blocked.btf back.btf --from-layout b_fs_yx_fsv16 --shape 2,19,5,7 --tensor '#0'
  tilework convert model.onnx weights.safetensors --quantize int8:0
  tilework convert model.onnx model.tmfile --input-shape data=1,3,224,224
  tilework convert model.tmfile model.onnx --batch N
  tilework convert 'models/**/*.btf' --out-dir blocked --layout byxf --jobs 2 --keep-going
  find models -name '*.btf' -print0 | tilework convert - -0 --base models --out-dir blocked --json
  tilework convert '/models/*.btf' --out-dir /blocked --layout byxf --queue redis://queue:6379

Numbers are separated by commas; "scalar" or an empty list is a shape without axes. With
--from-layout alone the output is in row-major order. After a change of layout the command that
undoes it is printed, or written to a file with --undo. OUT may be the same file as IN.

--quantize writes quantized values for each float tensor, and beside them NAME_scale and NAME_zero_point.
Scalars and vectors are not quantized unless --tensor names them.

Many files: quoted patterns support * ** ? [a-z] {a,b} and !(a); an existing path is never a
pattern. An output has the name of its input; a file that matches a pattern keeps its path below the
part of the pattern without wildcards. --base DIR keeps the path below DIR for every input. Two
inputs with the same output are an error. Finished files are recorded in
DIR/.tilework-manifest.jsonl, and the next run skips them while input, output and options are
unchanged. Undo commands are not printed: --undo writes them to a file, for skipped files too. The
exit code is the highest of all files. JSON has one line per file, then a line with the summary. A
single IN without these options is always converted, and not recorded.`

const numbers = (flags: string, description: string): Option =>
  new Option(`${flags} <n,n,…>`, description).argParser(numberList(flags))

/** `2/8` is the second of eight shards; `auto` and `auto/8` take it from the job scheduler. The library checks the range. */
function parseShard(text: string): Shard {
  const [isAuto, of] = /^auto(?:\/(\d{1,7}))?$/.exec(text) ?? []
  if (isAuto !== undefined) return schedulerShard(of === undefined ? {} : { count: Number(of) })
  const [, index, count] = /^(\d{1,7})\/(\d{1,7})$/.exec(text) ?? []
  if (index !== undefined && count !== undefined) return { index: Number(index), count: Number(count) }
  throw new TileworkError(
    'ERR_ARGUMENT',
    `--shard is "${text}"; it must be i/n, for example 1/8, auto or auto/n.`,
  )
}

/** The library checks the range. */
function parseJobs(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text)
  throw new TileworkError(
    'ERR_ARGUMENT',
    `--jobs is "${text}"; it must be a whole number from 0 (one per CPU).`,
  )
}

/** The library checks the range, and where a name is allowed. */
function parseBatch(text: string): number | string {
  return /^\d{1,9}$/.test(text) ? Number(text) : text
}

export function addConvert(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('convert')
    .summary('write tensors in another memory layout, of one file or many')
    .description('Writes the tensors of a file to another file, in another memory layout where one is named.')
    .usage('[options] IN OUT\n       tilework convert [options] IN… --out-dir DIR')
    .argument(
      '[paths...]',
      'input and output; with --out-dir inputs, patterns of inputs, or - for a list on stdin',
    )
  addTensorOptions(command)
  addManyOptions(command)
  addVerifyOptions(command, '0; 0.02 for --dtype float16 and float32, 0.1 for bfloat16')
  addOutputOptions(addReadOptions(command))
    .addOption(replaceGraphOption())
    .addOption(deadlineOption())
    .option('--undo <file>', 'write the commands that undo the conversion to this file')
    .option('--explain', 'also print how each tensor was computed: kernels, loops, threads and stores')
    .option('--json', 'print JSON')
    .option('--quiet', 'do not say on stderr what was written')
    .addHelpText('after', EXAMPLES)
    .action(async (paths: string[], flags: ConvertFlags) => finish(await convert(paths, flags, terminal)))
}

function addTensorOptions(command: Command): void {
  command
    .option(
      '--layout <name>',
      'memory layout to write: one of "tilework layout --list", or any name of that grammar',
    )
    .option('--from-layout <name>', 'layout of the stored elements; needs --shape')
    .addOption(numbers('--shape', 'logical shape of the tensors, with --from-layout'))
    .addOption(
      numbers('--pad-lower', 'padding before each axis, of --layout, or without it of --from-layout'),
    )
    .addOption(numbers('--pad-upper', 'padding after each axis, of --layout, or without it of --from-layout'))
    .addOption(numbers('--from-pad-lower', 'padding before each axis, of --from-layout'))
    .addOption(numbers('--from-pad-upper', 'padding after each axis, of --from-layout'))
    .option(
      '--tensor <selector>',
      "write only this tensor: NAME, '#INDEX', or name:NAME for a name that begins with # or name:; may be repeated",
      collect,
    )
    .addOption(
      new Option('--as <kind>', 'match the axes of a data layout and a weights layout by position').choices([
        'weights',
      ]),
    )
    .option(
      '--format <name>',
      'file format to write (default: by the extension of OUT, otherwise the format of IN)',
    )
    .option('--keep-integers', 'with --dtype of floats: integers and booleans keep their dtype')
    .option('--weights-only', 'write the weights of a model without its graph')
    .addOption(
      new Option(
        '--input-shape <input=n,n,…>',
        'shape of a graph input, for conversions of a graph to another format; may be repeated',
      ).argParser(collectStaticShape),
    )
    .addOption(
      new Option(
        '--batch <n>',
        'batch size: the first dimension of every graph input; for tmfile to ONNX also a name',
      ).argParser(parseBatch),
    )
    .addOption(
      new Option(
        '--quantized <form>',
        'quantized graphs: keep the quantized values, or dequantize (default: keep)',
      ).choices(['keep', 'dequantize']),
    )
    .option('--device <id>', 'compute on an OpenCL device: "opencl", or an id of "tilework devices"')
    .addOption(
      new Option(
        '--quantize <type>',
        'quantize, with scales computed from the values: int8, int8:AXIS (a scale per index) or int8:block=32 (per block of the last axis)',
      ).argParser(parseQuantize),
    )
    .option(
      '--dtype <name>',
      'dtype to write: a name, an alias such as bf16, or a block type of GGUF such as q8_0',
      parseDtype,
    )
}

function addManyOptions(command: Command): void {
  command
    .option('--out-dir <dir>', 'write into this folder, with the name of the input; created if necessary')
    .option('--base <dir>', 'keep the path of each input below this folder')
    .option('--stdin', 'read a list of inputs from stdin, one per line; same as the input -')
    .option('-0, --null', 'paths in the list end with NUL, as find -print0 writes them')
    .addOption(
      new Option('--jobs <n>', 'files to convert at the same time; 0: one per CPU (default: 1)').argParser(
        parseJobs,
      ),
    )
    .option('--keep-going', 'continue after a failure')
    .addOption(
      new Option(
        '--shard <i/n>',
        'convert every n-th file of the sorted list, starting with the i-th; auto: take i and n from the job scheduler',
      ).argParser(parseShard),
    )
    .option('--manifest <file>', 'record finished files in this file instead of in the output folder')
    .option('--no-manifest', 'record nothing and skip nothing')
    .option('--force', 'convert finished files again')
    .option(
      '--queue <url>',
      'have the workers of this queue convert the files: redis://host:6379 or rediss://…',
    )
    .option('--queue-name <name>', 'name of the queue on that server (default: tilework)')
    .option(
      '--attempts <n>',
      'attempts of a file after transient failures (default: 5)',
      wholeNumber('--attempts'),
    )
    .option(
      '--priority <n>',
      'with --queue: 1 is taken first; files without a priority are taken before all others',
      wholeNumber('--priority'),
    )
    .addOption(metricsOption('the run lasts'))
  refuseBoth(command, 'manifest', 'no-manifest')
}

/** Refuses a flag together with its negation: the last one would win silently, which hides a mistake in a script. */
function refuseBoth(command: Command, one: string, other: string): void {
  const given = new Set<string>()
  for (const name of [one, other]) {
    command.on(`option:${name}`, () => {
      if (given.add(name).size > 1) {
        throw new TileworkError(
          'ERR_ARGUMENT',
          `--${one} and --${other} contradict each other; use one of them.`,
        )
      }
    })
  }
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** Runs the command. */
export async function convert(
  paths: readonly string[],
  flags: ConvertFlags,
  terminal: Terminal,
): Promise<ExitCode> {
  checkFlags(flags)
  printUnknownLayouts(flags, terminal)
  const { outDir } = flags
  if (outDir !== undefined && (await isManyRun(paths, flags))) {
    return convertMany(paths, { ...flags, outDir }, terminal)
  }
  const progress = startProgress('Writing', terminal)
  try {
    const report = await (outDir === undefined
      ? convertTo(await choosePaths(paths), flags, terminal, progress)
      : convertInto(paths[0]!, outDir, flags, terminal, progress))
    progress.stop()
    if ('isRefused' in report) {
      printRefusal(report, flags, terminal)
      return EXIT.findings
    }
    print(report, flags, terminal)
    return writtenExitCode(report.findings, flags)
  } finally {
    progress.stop()
  }
}

/** A blocked layout that nobody else knows is written as named; it may be a typing error. */
function printUnknownLayouts({ layout, fromLayout, quiet }: ConvertFlags, { stderr }: Terminal): void {
  for (const name of quiet ? [] : [fromLayout, layout]) {
    const note = name === undefined ? undefined : unknownLayoutNote(parseLayout(name).name)
    if (note !== undefined) stderr.write(`tilework: ${name}: ${note}\n`)
  }
}

const URL_START = /^[a-z][a-z0-9+.-]+:\/\//i

async function isManyRun(paths: readonly string[], flags: ConvertFlags): Promise<boolean> {
  const [only] = paths
  if (only === undefined || paths.length > 1 || only === '-' || manyFlags(flags).length > 0) return true
  // URLs are listed and reported as in a run over many files.
  if ([only, flags.outDir ?? ''].some((name) => URL_START.test(name))) return true
  return !(await isThere(only)) && isPattern(only)
}

/** The result of one file. */
interface ConvertReport extends ConvertResult {
  readonly input: string
  readonly output: string
  readonly verification?: Verification
}

/** An output that was not written, because `--verify` found it wrong. */
interface RefusedOutput {
  readonly isRefused: true
  readonly input: string
  readonly output: string
  readonly verification: Verification
}

interface FilePaths {
  readonly input: string
  readonly output: string
}

async function convertTo(
  { input, output }: FilePaths,
  flags: ConvertFlags,
  { signal }: Terminal,
  progress: Progress,
): Promise<ConvertReport | RefusedOutput> {
  const began = performance.now()
  const options = { ...libraryOptions(flags), signal, onProgress: progress.update }
  refuseUndoPath(flags, [input, output])
  checkConvertOptions(input, output, options)
  const verifier = await Verifier.of(flags, signal)
  try {
    const { deadline } = options
    const file = await openInput(input, flags, undefined, timeLeft(deadline, began))
    try {
      const verification =
        verifier && (await verifyConversion(file, { input, output }, options, verifier, flags))
      if (verification?.isWithin === false) return { isRefused: true, input, output, verification }
      const result = await convertFile(file, output, { ...options, ...timeLeft(deadline, began) })
      return { input, output, ...result, ...(verification && { verification }) }
    } finally {
      file.close()
    }
  } finally {
    verifier?.close()
  }
}

/** @throws TileworkError ERR_ARGUMENT where the undo commands would replace an input or output; with `--no-clobber` any file */
function refuseUndoPath({ undo, clobber }: ConvertFlags, paths: readonly string[]): void {
  if (undo === undefined) return
  if (clobber === false && existsSync(undo)) {
    throw new TileworkError('ERR_ARGUMENT', `--undo ${undo} exists, and --no-clobber refuses to replace it.`)
  }
  if (!paths.some((path) => resolve(path) === resolve(undo))) return
  throw new TileworkError('ERR_ARGUMENT', `--undo ${undo} would replace the input or the output.`)
}

/** One file into a folder: a run over one file, without a manifest. */
async function convertInto(
  input: string,
  outDir: string,
  flags: ConvertFlags,
  { signal }: Terminal,
  progress: Progress,
): Promise<ConvertReport> {
  refuseUndoPath(flags, [input, join(outDir, basename(input))])
  let outcome: FileOutcome | undefined
  try {
    await convertFiles(
      { path: input },
      {
        ...libraryOptions(flags),
        ...{ outDir, signal, manifest: false, onProgress: progress.update },
        onFile: (ended) => {
          outcome = ended
        },
      },
    )
  } catch (error) {
    if (outcome?.status === 'failed' && outcome.stage === 'open') throw inputError(error, input)
    throw error
  }
  return outcome as ConvertReport & FileOutcome
}

async function choosePaths(paths: readonly string[]): Promise<FilePaths> {
  const [input, output, ...more] = paths
  if (input === undefined || output === undefined) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      'convert needs an input and an output: IN OUT, or IN --out-dir DIR.',
    )
  }
  if (more.length > 0) {
    const found = formatCount(paths.length, 'path')
    throw new TileworkError('ERR_ARGUMENT', `convert takes IN and OUT; for ${found} use --out-dir DIR.`)
  }
  if (input === '-') {
    throw new TileworkError(
      'ERR_ARGUMENT',
      'The input - is a list of files on stdin, which needs --out-dir DIR.',
    )
  }
  if (output === '-' || output === '/dev/stdout') {
    const advice = 'name a file (./- for a file named -)'
    throw new TileworkError('ERR_ARGUMENT', `convert does not write to stdout; ${advice}.`)
  }
  if (await isFolder(input)) throw await folderError(input, output)
  if (await isFolder(output)) {
    throw new TileworkError('ERR_ARGUMENT', `${output} is a folder; use --out-dir to write into it.`)
  }
  await refusePattern(input, output)
  return { input, output }
}

/** Refuses a pattern that the shell did not expand, because no file matches or it is quoted. */
async function refusePattern(input: string, output: string): Promise<void> {
  if (!isPattern(input) || (await isThere(input))) return
  const command = shellQuote(['tilework', 'convert', input, '--out-dir', output])
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${input} is a pattern and not a file; patterns need --out-dir: ${command}`,
  )
}

/** What a folder of tensors has most likely. */
const TENSOR_FILES = ['.safetensors', '.onnx', '.npy', '.npz', '.gguf', '.pt', '.bin', '.btf', '.tmfile']

async function folderError(folder: string, output: string): Promise<TileworkError> {
  const extensions = (await readdir(folder).catch(() => [])).map((name) => extname(name))
  const known = TENSOR_FILES.find((extension) => extensions.includes(extension))
  const pattern = `${folder.replace(/\/+$/, '')}/**/*${known ?? '.safetensors'}`
  const command = shellQuote(['tilework', 'convert', pattern, '--out-dir', output])
  return new TileworkError(
    'ERR_ARGUMENT',
    `${folder} is a folder; a pattern names the files in it: ${command}`,
  )
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}

function printRefusal(
  { input, output, verification }: RefusedOutput,
  { json }: ConvertFlags,
  terminal: Terminal,
): void {
  if (json) printJson({ status: 'refused', input, output, verification }, terminal)
  else terminal.stdout.write(verificationLines(verification))
  terminal.stderr.write(`tilework: ${refusalLine(output, verification)}\n`)
}

function print(report: ConvertReport, flags: ConvertFlags, terminal: Terminal): void {
  const { input, output, format, byteLength, tensors, findings, droppedNodes, losses, graph } = report
  const { explanations = [], verification } = report
  const undo = undoCommands(output, report.undo)
  const file = flags.undo === undefined ? undefined : new UndoFile(flags.undo, flags)
  file?.add(undo)
  file?.close()
  if (flags.json) {
    const written = { status: 'written', input, output, format, byteLength, tensors, findings }
    const asked = {
      ...(graph && { graph }),
      ...(flags.explain && { explanations }),
      ...(verification && { verification }),
    }
    printJson({ ...written, droppedNodes, losses, undo, ...asked }, terminal)
    return
  }
  const { stdout, stderr, stderrIsTerminal } = terminal
  if (verification) stdout.write(verificationLines(verification))
  for (const line of findingNotices(input, findings)) stderr.write(`tilework: ${line}\n`)
  const empty = file?.emptyNote()
  if (empty !== undefined) stderr.write(`tilework: ${printable(empty)}\n`)
  const lost = lossesLine(input, losses)
  if (lost !== undefined) stderr.write(`tilework: ${lost}\n`)
  const raw = rawItemsLine(output, format, tensors)
  if (raw !== undefined) stderr.write(`tilework: ${raw}\n`)
  if (graph) for (const line of graphLines(output, graph)) stderr.write(`tilework: ${printable(line)}\n`)
  if (droppedNodes > 0 && !selectsTensors(flags)) {
    const nodes = formatCount(droppedNodes, 'node')
    const line = `${input} is a model of ${nodes}; ${output} holds its weights and not its graph.`
    stderr.write(`tilework: ${printable(line)}\n`)
  }
  if (!flags.quiet) {
    const what = `${formatCount(tensors.length, 'tensor')}, ${formatBytes(byteLength)}`
    const where = file ? ` To undo it: ${printable(file.path)}` : ' To undo it:'
    stderr.write(`Wrote ${printable(output)}: ${what}.${undo.length > 0 && stderrIsTerminal ? where : ''}\n`)
  }
  for (const { text } of explanations) {
    for (const line of text.split('\n')) stdout.write(`${printable(line)}\n`)
  }
  if (!file) for (const { command } of undo) stdout.write(`${command}\n`)
}
