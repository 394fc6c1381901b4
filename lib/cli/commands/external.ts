/** `tilework externalize FILE` and `tilework internalize FILE`: move the values of an ONNX model to external data and back. */

import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { type OpenFile, type SaveOptions, save, TileworkError } from '../../index.js'
import type { ExternalOptions } from '../../onnx.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { addReadOptions, openInput, type ReadChoice } from '../files/open_input.js'
import { formatBytes } from '../text/byte_count.js'
import { printable, printJson } from '../text/printable.js'
import { startProgress } from '../text/progress.js'
import type { Terminal } from '../text/terminal.js'
import { addOutputOptions, fileOptions, type OutputChoice } from './output_options.js'

interface WriteChoice extends ReadChoice, OutputChoice {
  readonly output: string
  readonly json?: boolean
}

interface ExternalizeChoice extends WriteChoice, Omit<ExternalOptions, 'format'> {
  readonly safetensors?: boolean
}

export interface ExternalReport {
  readonly input: string
  readonly output: string
  /** Length of the model and of the data files that were written. */
  readonly byteLength: number
  /** The data files, relative to the folder of the output. */
  readonly dataFiles: readonly DataFile[]
}

export interface DataFile {
  readonly name: string
  readonly byteLength: number
}

const EXTERNALIZE_HELP = `
Examples:
  tilework externalize model.onnx -o out.onnx
  tilework externalize model.onnx -o out.onnx --shard-bytes 2000000000
  tilework externalize model.onnx -o out.onnx --safetensors      # out.onnx and out.safetensors

Values are written to OUT.data, or to the file of --location. If that file exists, a number is added
to its name; --location replaces a file that only the replaced OUT used. Data files with such names
that are no longer used are removed: see --keep-old-data.`

const INTERNALIZE_HELP = `
Examples:
  tilework internalize model.onnx -o whole.onnx

Such a file has at most 2 GiB. Where OUT is the model itself, its data files are removed if tilework
chose their names: see --keep-old-data.`

export function addExternalize(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('externalize')
    .summary('move the values of a model into files beside it')
    .description('Writes an ONNX model with its large initializers in other files (external data).')
    .argument('<file>', 'an ONNX model')
    .requiredOption('-o, --output <file>', 'output file')
    .option('--location <name>', 'file for the values, relative to the folder of the output')
    .option(
      '--threshold <bytes>',
      'minimum bytes of a tensor to move (default: 1024)',
      bytesOf('--threshold'),
    )
    .option(
      '--alignment <bytes>',
      'alignment of offsets (default: 4096 for tensors of 1 MiB and more, else 64)',
      bytesOf('--alignment'),
    )
    .option('--shard-bytes <bytes>', 'maximum bytes of one data file', bytesOf('--shard-bytes'))
    .option('--checksum', 'store the SHA-1 of the data file with each tensor')
    .option('--attributes', 'also move large tensors of attributes, such as values of Constant')
    .option('--safetensors', 'write data files as safetensors, in which tensors have names')
  finishCommand(command, EXTERNALIZE_HELP, async (file: string, options: ExternalizeChoice) =>
    finish(await run(file, options, externalOf(options), terminal)),
  )
}

export function addInternalize(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('internalize')
    .summary('move the values of a model into its file')
    .description('Writes an ONNX model as one file that contains all external data.')
    .argument('<file>', 'an ONNX model')
    .requiredOption('-o, --output <file>', 'output file')
  finishCommand(command, INTERNALIZE_HELP, async (file: string, options: WriteChoice) =>
    finish(await run(file, options, false, terminal)),
  )
}

function finishCommand<Options>(
  command: Command,
  help: string,
  action: (file: string, options: Options) => Promise<void>,
): void {
  addOutputOptions(addReadOptions(command))
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .action(action)
}

function bytesOf(flag: string): (text: string) => number {
  return (text) => {
    if (/^\d+$/.test(text)) return Number(text)
    throw new TileworkError('ERR_ARGUMENT', `${flag} is "${text}"; it must be a number of bytes.`)
  }
}

function externalOf({
  location,
  threshold,
  alignment,
  shardBytes,
  checksum,
  attributes,
  safetensors,
}: ExternalizeChoice): ExternalOptions {
  return {
    ...(location !== undefined && { location }),
    ...(threshold !== undefined && { threshold }),
    ...(alignment !== undefined && { alignment }),
    ...(shardBytes !== undefined && { shardBytes }),
    ...(checksum !== undefined && { checksum }),
    ...(attributes !== undefined && { attributes }),
    ...(safetensors && { format: 'safetensors' }),
  }
}

/** Refuses a model with missing data files: the written model would refer to files that are not in its folder. */
function refuseMissingData(file: OpenFile): void {
  for (const { name, hasData } of file.tensors) {
    if (hasData) continue
    throw new TileworkError(
      'ERR_NO_DATA',
      `The data of ${JSON.stringify(name)} is missing; "tilework check" reports the reason.`,
    )
  }
}

async function run(
  input: string,
  options: WriteChoice,
  external: NonNullable<SaveOptions['external']>,
  terminal: Terminal,
): Promise<ExitCode> {
  const { output } = options
  const file = await openInput(input, options)
  const progress = startProgress('Writing', terminal)
  let byteLength = 0
  try {
    if (!file.onnx) {
      throw new TileworkError('ERR_UNSUPPORTED', `${input} is not an ONNX model, so it has no external data.`)
    }
    refuseMissingData(file)
    await save(output, file, {
      format: 'onnx',
      external,
      ...fileOptions(options),
      signal: terminal.signal,
      onProgress: (now) => {
        byteLength = now.bytesTotal
        progress.update(now)
      },
    })
  } finally {
    progress.stop()
    file.close()
  }
  const report: ExternalReport = { input, output, byteLength, dataFiles: await dataFilesOf(output) }
  if (options.json) printJson(report, terminal)
  else terminal.stdout.write(formatReport(report))
  return EXIT.ok
}

/** The data files that a model refers to. */
async function dataFilesOf(output: string): Promise<DataFile[]> {
  const written = await openInput(output)
  try {
    return [...written.parts]
  } finally {
    written.close()
  }
}

/** One line per file. Data files are in the folder of the model, or below it. */
function formatReport({ output, byteLength, dataFiles }: ExternalReport): string {
  const inside = dataFiles.reduce((left, { byteLength: outside }) => left - outside, byteLength)
  const files = [
    { path: output, bytes: inside },
    ...dataFiles.map((file) => ({ path: join(dirname(output), file.name), bytes: file.byteLength })),
  ]
  return files.map(({ path, bytes }) => `${printable(path)}: ${formatBytes(bytes)}\n`).join('')
}
