/**
 * `tilework convert`: the main job. Tensors are selected, said to be in a layout (`--from-layout`), reordered into
 * another (`--layout`), and written; what the file format cannot remember is printed as the command that undoes it.
 */
import { realpath, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Command, Option } from 'commander'
import { chooseFormat } from '../formats/registry.js'
import {
  DTYPES,
  type Finding,
  type FormatName,
  type OpenFile,
  save,
  type Tensor,
  TileworkError,
} from '../index.js'
import { formatBytes, formatCount } from './byte_count.js'
import { EXIT, type ExitCode } from './exit_codes.js'
import { makeFolder } from './make_folder.js'
import { openInput } from './open_input.js'
import { numberList } from './parse_shape.js'
import { printJson } from './print_json.js'
import { printable } from './printable.js'
import { startProgress } from './progress.js'
import { checkReorderOptions, type ReorderChoice, reorderAll } from './reorder_tensors.js'
import { selectTensors } from './select_tensors.js'
import { type TensorReport, tensorReport } from './tensor_report.js'
import type { Terminal } from './terminal.js'
import { type UndoCommand, undoCommands } from './undo_command.js'

export interface ConvertOptions extends ReorderChoice {
  readonly outDir?: string
  readonly tensor?: readonly string[]
  readonly format?: string
  readonly dtype?: string
  readonly json?: boolean
}

interface ConvertReport {
  readonly input: string
  readonly output: string
  readonly format: string
  /** Length of the output. */
  readonly byteLength: number
  readonly tensors: readonly TensorReport[]
  /** What the lenient read of the input noticed. */
  readonly findings: readonly Finding[]
  /** One command for each tensor that is not in row-major order. */
  readonly undo: readonly UndoCommand[]
}

const EXAMPLES = `
Examples:
  tilework convert model.btf blocked.btf --layout b_fs_yx_fsv16
  tilework convert blocked.btf back.btf --from-layout b_fs_yx_fsv16 --shape 2,19,5,7 --tensor '#0'
  tilework convert model.btf --out-dir blocked --layout os_is_yx_isv16_osv16 --as weights --tensor conv1

Numbers are separated by commas; "scalar" or an empty list is a shape without axes. Without
--layout a tensor that comes from another layout is written in row-major order. After a
conversion into a layout the command that undoes it is printed. OUT may be IN.`

const numbers = (flags: string, description: string): Option =>
  new Option(`${flags} <n,n,…>`, description).argParser(numberList(flags))

export function addConvert(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  program
    .command('convert')
    .summary('write tensors in another memory layout')
    .description('Writes the tensors of a file to another file, in another memory layout where one is named.')
    .usage('[options] IN OUT\n       tilework convert [options] IN --out-dir DIR')
    .argument('<paths...>', 'input, then output unless --out-dir is given')
    .option('--out-dir <dir>', 'write to this folder, under the name of the input; it is made if need be')
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
    .option('--tensor <selector>', "write only this tensor: NAME or '#INDEX'; may be repeated", collect)
    .addOption(
      new Option('--as <kind>', 'join a data and a weights layout by the position of their axes').choices([
        'weights',
      ]),
    )
    .option('--format <name>', 'file format to write; else by the extension of OUT, else that of IN')
    .option('--dtype <name>', 'element type to write; casting comes in a later version')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (paths: string[], options: ConvertOptions) =>
      finish(await convert(paths, options, terminal)),
    )
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** Runs the command. */
export async function convert(
  paths: readonly string[],
  options: ConvertOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  checkReorderOptions(options)
  const { input, output } = await choosePaths(paths, options.outDir)
  const file = await openInput(input)
  try {
    if (options.outDir !== undefined) await makeFolder(options.outDir)
    const report = await convertFile(file, { input, output }, options, terminal)
    if (options.json) printJson(report, terminal)
    else printReport(report, terminal)
  } finally {
    file.close()
  }
  return EXIT.ok
}

async function choosePaths(
  paths: readonly string[],
  outDir: string | undefined,
): Promise<{ input: string; output: string }> {
  const inputs = outDir === undefined ? paths.slice(0, -1) : paths
  const [input] = inputs
  if (input === undefined) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      'convert needs an input and an output: IN OUT, or IN --out-dir DIR.',
    )
  }
  if (inputs.length > 1) {
    const found = formatCount(inputs.length, 'input')
    throw new TileworkError('ERR_ARGUMENT', `convert takes one input in this version; ${found} were given.`)
  }
  if (outDir !== undefined) {
    const output = join(outDir, basename(input))
    // Nobody named the output, so replacing the input cannot be what was meant.
    if (await isSameFile(input, output)) {
      throw new TileworkError('ERR_ARGUMENT', `--out-dir ${outDir} would overwrite the input ${input}.`)
    }
    return { input, output }
  }
  const output = paths.at(-1)!
  if (await isFolder(output)) {
    throw new TileworkError('ERR_ARGUMENT', `${output} is a folder; write into it with --out-dir.`)
  }
  return { input, output }
}

async function isSameFile(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([one, other].map((path) => realpath(path).catch(() => undefined)))
  return first !== undefined && first === second
}

async function isFolder(path: string): Promise<boolean> {
  // What cannot be looked at is left to the write, whose error names the reason.
  return (await stat(path).catch(() => undefined))?.isDirectory() === true
}

async function convertFile(
  file: OpenFile,
  paths: { readonly input: string; readonly output: string },
  options: ConvertOptions,
  terminal: Terminal,
): Promise<ConvertReport> {
  const selected = selectTensors(file.tensors, options.tensor ?? [])
  checkDtype(selected, options.dtype)
  const isReordered = options.layout !== undefined || options.fromLayout !== undefined
  const reordered = isReordered ? reorderAll(selected, options, options.tensor !== undefined) : []
  const tensors = isReordered ? reordered.map(({ after }) => after) : selected
  const isWhole = !isReordered && options.tensor === undefined
  const format = chooseFormat(options.format, paths.output, file.format).name
  const byteLength = await write(paths.output, isWhole ? file : tensors, format, terminal)
  return {
    ...paths,
    format,
    byteLength,
    tensors: tensors.map(tensorReport),
    findings: file.findings,
    undo: undoCommands(paths.output, reordered, options.as),
  }
}

/** A cast that is not done must not look done, so a type that differs is refused. */
function checkDtype(tensors: readonly Tensor[], dtype: string | undefined): void {
  if (dtype === undefined) return
  if (!Object.hasOwn(DTYPES, dtype)) {
    const known = Object.keys(DTYPES).join(', ')
    throw new TileworkError('ERR_DTYPE', `"${dtype}" is no element type; known are: ${known}.`)
  }
  const other = tensors.find((tensor) => tensor.dtype !== dtype)
  if (other) {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `Tensor "${other.name}" is ${other.dtype}, not ${dtype}; casting comes in a later version.`,
    )
  }
}

/** Bytes of the file that was written. */
async function write(
  output: string,
  content: OpenFile | readonly Tensor[],
  format: string,
  terminal: Terminal,
): Promise<number> {
  const progress = startProgress('Writing', terminal)
  let byteLength = 0
  try {
    await save(output, content, {
      // A name that is no format is refused by save, with the list of those that are.
      format: format as FormatName,
      signal: terminal.signal,
      onProgress: ({ bytesDone, bytesTotal }) => {
        byteLength = bytesTotal
        progress.update(bytesDone, bytesTotal)
      },
    })
  } finally {
    progress.stop()
  }
  return byteLength
}

function printReport(report: ConvertReport, { stdout, stderr, stderrIsTerminal }: Terminal): void {
  const { input, output, byteLength, tensors, findings, undo } = report
  if (findings.length > 0) {
    const noticed = formatCount(findings.length, 'finding')
    stderr.write(`tilework: ${printable(input)} has ${noticed}; "tilework check" lists them.\n`)
  }
  if (stderrIsTerminal) {
    const what = `${formatCount(tensors.length, 'tensor')}, ${formatBytes(byteLength)}`
    stderr.write(`Wrote ${printable(output)}: ${what}.${undo.length > 0 ? ' To undo it:' : ''}\n`)
  }
  for (const { command } of undo) stdout.write(`${command}\n`)
}
