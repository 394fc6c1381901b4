/**
 * `tilework convert`: the main job. Tensors are selected, said to be in a layout (`--from-layout`), reordered into
 * another (`--layout`), and written; what the file format cannot remember is printed as the command that undoes it.
 */
import { stat } from 'node:fs/promises'
import { type Command, Option } from 'commander'
import {
  type ConvertResult,
  convert as convertFile,
  convertMany as convertFiles,
  type FileOutcome,
  isPattern,
  resolveDtype,
  type Shard,
  TileworkError,
} from '../../index.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { addReadOptions, inputError, openInput } from '../files/open_input.js'
import { formatBytes, formatCount } from '../text/byte_count.js'
import { findingNotices } from '../text/finding_line.js'
import { numberList } from '../text/parse_shape.js'
import { printJson } from '../text/print_json.js'
import { printable } from '../text/printable.js'
import { type Progress, startProgress } from '../text/progress.js'
import { shellQuote } from '../text/shell_quote.js'
import type { Terminal } from '../text/terminal.js'
import { convertMany } from './convert_many.js'
import { type ConvertFlags, checkFlags, libraryOptions, manyFlags, undoCommands } from './convert_options.js'

const EXAMPLES = `
Examples:
  tilework convert model.btf blocked.btf --layout b_fs_yx_fsv16
  tilework convert blocked.btf back.btf --from-layout b_fs_yx_fsv16 --shape 2,19,5,7 --tensor '#0'
  tilework convert 'models/**/*.btf' --out-dir blocked --layout byxf --jobs 2 --keep-going
  find models -name '*.btf' -print0 | tilework convert - -0 --base models --out-dir blocked --json

Numbers are separated by commas; "scalar" or an empty list is a shape without axes. Without
--layout a tensor that comes from another layout is written in row-major order. After a
conversion into a layout the command that undoes it is printed. OUT may be IN.

Many files: patterns in quotes know * ** ? [a-z] {a,b} and !(a); a path that exists is never a
pattern. An output has the name of its input, and where a pattern found it, its path below the
part without wildcards; --base DIR keeps the path below DIR for every input. No two inputs are
written to one output. Finished files are noted in DIR/.tilework-manifest.jsonl and skipped by
the next run while input, output and options are the same. The exit code is the highest of all
files'. JSON is a line a file, then a line with the summary. One IN without these options is
converted as with OUT: always, and without a note.`

const numbers = (flags: string, description: string): Option =>
  new Option(`${flags} <n,n,…>`, description).argParser(numberList(flags))

/** `2/8` is the second of eight parts. The library checks the range. */
function parseShard(text: string): Shard {
  const [, index, count] = /^(\d{1,7})\/(\d{1,7})$/.exec(text) ?? []
  if (index !== undefined && count !== undefined) return { index: Number(index), count: Number(count) }
  throw new TileworkError('ERR_ARGUMENT', `--shard must be i/n, for example 1/8; it is "${text}".`)
}

/** The library checks the range. */
function parseJobs(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text)
  throw new TileworkError('ERR_ARGUMENT', `--jobs must be a whole number; it is "${text}".`)
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
  addReadOptions(command)
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (paths: string[], flags: ConvertFlags) => finish(await convert(paths, flags, terminal)))
}

function addTensorOptions(command: Command): void {
  command
    .option(
      '--layout <name>',
      'memory layout to write: one of "tilework layout --list", or any name of that grammar',
    )
    .option('--from-layout <name>', 'say which layout the stored elements are in; needs --shape')
    .addOption(numbers('--shape', 'logical shape of the tensors, with --from-layout'))
    .addOption(numbers('--pad-lower', 'padding before each axis, of --layout, else of --from-layout'))
    .addOption(numbers('--pad-upper', 'padding after each axis, of --layout, else of --from-layout'))
    .addOption(numbers('--from-pad-lower', 'padding before each axis, of --from-layout'))
    .addOption(numbers('--from-pad-upper', 'padding after each axis, of --from-layout'))
    .option(
      '--tensor <selector>',
      "write only this tensor: NAME, '#INDEX', or name:NAME for a name that begins with # or name:; may be repeated",
      collect,
    )
    .addOption(
      new Option('--as <kind>', 'join a data and a weights layout by the position of their axes').choices([
        'weights',
      ]),
    )
    .option('--format <name>', 'file format to write; else by the extension of OUT, else that of IN')
    .option('--device <id>', 'compute on an OpenCL device: "opencl", or an id of "tilework devices"')
    .option('--dtype <name>', 'element type to write: its name, or a short one such as bf16', resolveDtype)
}

function addManyOptions(command: Command): void {
  command
    .option('--out-dir <dir>', 'write to this folder, under the name of the input; it is made if need be')
    .option('--base <dir>', 'keep the path of each input below this folder')
    .option('--stdin', 'read a list of inputs from stdin, one a line; the same as the input -')
    .option('-0, --null', 'names in the list end with NUL instead, as find -print0 writes them')
    .addOption(
      new Option(
        '--jobs <n>',
        'files to work on at a time; 0: as many as there are CPUs (default: 1)',
      ).argParser(parseJobs),
    )
    .option('--keep-going', 'go on after a failure')
    .addOption(
      new Option('--shard <i/n>', 'take every n-th file of the sorted list, from the i-th on').argParser(
        parseShard,
      ),
    )
    .option('--manifest <file>', 'note finished files here instead of in the folder of outputs')
    .option('--no-manifest', 'note nothing and skip nothing')
    .option('--force', 'convert finished files again')
  refuseBoth(command, 'manifest', 'no-manifest')
}

/** Of an option and its negation the last would win, and a mistyped script would go on without a word. */
function refuseBoth(command: Command, one: string, other: string): void {
  const given = new Set<string>()
  for (const name of [one, other]) {
    command.on(`option:${name}`, () => {
      if (given.add(name).size > 1) {
        throw new TileworkError(
          'ERR_ARGUMENT',
          `--${one} and --${other} contradict each other; give one of them.`,
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
    print(report, flags, terminal)
  } finally {
    progress.stop()
  }
  return EXIT.ok
}

async function isManyRun(paths: readonly string[], flags: ConvertFlags): Promise<boolean> {
  const [only] = paths
  if (only === undefined || paths.length > 1 || only === '-' || manyFlags(flags).length > 0) return true
  return !(await isThere(only)) && isPattern(only)
}

/** What became of one file. */
interface ConvertReport extends ConvertResult {
  readonly input: string
  readonly output: string
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
): Promise<ConvertReport> {
  const file = await openInput(input, flags)
  try {
    const options = { ...libraryOptions(flags), signal, onProgress: progress.update }
    return { input, output, ...(await convertFile(file, output, options)) }
  } finally {
    file.close()
  }
}

/** One file into a folder: a run over one file, without a manifest. */
async function convertInto(
  input: string,
  outDir: string,
  flags: ConvertFlags,
  { signal }: Terminal,
  progress: Progress,
): Promise<ConvertReport> {
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
  if (output === '-') {
    const advice = 'name a file (./- for one of that name)'
    throw new TileworkError('ERR_ARGUMENT', `convert does not write tensors to stdout; ${advice}.`)
  }
  if (await isFolder(output)) {
    throw new TileworkError('ERR_ARGUMENT', `${output} is a folder; write into it with --out-dir.`)
  }
  await refusePattern(input, output)
  return { input, output }
}

/** A pattern that the shell has not expanded, since no file matches or since it is quoted. */
async function refusePattern(input: string, output: string): Promise<void> {
  if (!isPattern(input) || (await isThere(input))) return
  const command = shellQuote(['tilework', 'convert', input, '--out-dir', output])
  throw new TileworkError('ERR_ARGUMENT', `${input} is no file; patterns need --out-dir: ${command}`)
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}

async function isFolder(path: string): Promise<boolean> {
  // What cannot be looked at is left to the write, whose error names the reason.
  return (await stat(path).catch(() => undefined))?.isDirectory() === true
}

function print(report: ConvertReport, { json }: ConvertFlags, terminal: Terminal): void {
  const { input, output, format, byteLength, tensors, findings } = report
  const undo = undoCommands(output, report.undo)
  if (json) {
    printJson({ status: 'written', input, output, format, byteLength, tensors, findings, undo }, terminal)
    return
  }
  const { stdout, stderr, stderrIsTerminal } = terminal
  for (const line of findingNotices(input, findings)) stderr.write(`tilework: ${line}\n`)
  if (stderrIsTerminal) {
    const what = `${formatCount(tensors.length, 'tensor')}, ${formatBytes(byteLength)}`
    stderr.write(`Wrote ${printable(output)}: ${what}.${undo.length > 0 ? ' To undo it:' : ''}\n`)
  }
  for (const { command } of undo) stdout.write(`${command}\n`)
}
