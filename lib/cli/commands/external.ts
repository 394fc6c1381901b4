/** `tilework externalize FILE` and `tilework internalize FILE`: where the values of an ONNX model lie. */
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { type ExternalOptions, type OpenFile, type SaveProgress, TileworkError } from '../../index.js'
import { externalize, internalize } from '../../onnx.js'
import { openedFile } from '../../pipeline/open.js'
import { valueText } from '../../value_text.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { addReadOptions, openInput, type ReadChoice } from '../files/open_input.js'
import { formatBytes } from '../text/byte_count.js'
import { printJson } from '../text/print_json.js'
import { printable } from '../text/printable.js'
import { startProgress } from '../text/progress.js'
import type { Terminal } from '../text/terminal.js'

interface WriteChoice extends ReadChoice {
  readonly output: string
  readonly json?: boolean
}

type ExternalizeChoice = WriteChoice & ExternalOptions

export interface ExternalReport {
  readonly input: string
  readonly output: string
  /** Length of the model and of the files beside it that were written. */
  readonly byteLength: number
  /** Those files, relative to the folder of the output. */
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

Unless --location names another, values go to OUT.data. No file that is there is written over but
OUT itself: where the name is taken, a number is put behind its stem. Data of a model that OUT
replaces stay, since other models may use them.`

const INTERNALIZE_HELP = `
Examples:
  tilework internalize model.onnx -o whole.onnx

A file of this kind has at most 2 GiB. The files that the model had its values in stay.`

export function addExternalize(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('externalize')
    .summary('put the values of a model into files beside it')
    .description('Writes an ONNX model whose large initializers lie in other files (external data).')
    .argument('<file>', 'an ONNX model')
    .requiredOption('-o, --output <file>', 'where to write it')
    .option('--location <name>', 'file for the values, relative to the folder of the output')
    .option(
      '--threshold <bytes>',
      'fewest bytes of a tensor that goes outside (default: 1024)',
      bytesOf('--threshold'),
    )
    .option(
      '--alignment <bytes>',
      'offsets are multiples of it (default: 4096 from 1 MiB on, else 64)',
      bytesOf('--alignment'),
    )
    .option('--shard-bytes <bytes>', 'most bytes of one file', bytesOf('--shard-bytes'))
    .option('--checksum', 'write the SHA-1 of its file with each tensor')
  finishCommand(command, EXTERNALIZE_HELP, async (file: string, options: ExternalizeChoice) =>
    finish(
      await run(file, options, terminal, (onnx, onProgress) => {
        const { signal } = terminal
        return externalize(options.output, onnx, { ...externalOf(options), signal, onProgress })
      }),
    ),
  )
}

export function addInternalize(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('internalize')
    .summary('put the values of a model into its file')
    .description('Writes an ONNX model as one file, with all external data in it.')
    .argument('<file>', 'an ONNX model')
    .requiredOption('-o, --output <file>', 'where to write it')
  finishCommand(command, INTERNALIZE_HELP, async (file: string, options: WriteChoice) =>
    finish(
      await run(file, options, terminal, (onnx, onProgress) =>
        internalize(options.output, onnx, { signal: terminal.signal, onProgress }),
      ),
    ),
  )
}

function finishCommand<Options>(
  command: Command,
  help: string,
  action: (file: string, options: Options) => Promise<void>,
): void {
  addReadOptions(command).option('--json', 'print JSON').addHelpText('after', help).action(action)
}

function bytesOf(flag: string): (text: string) => number {
  return (text) => {
    if (/^\d+$/.test(text)) return Number(text)
    throw new TileworkError('ERR_ARGUMENT', `${flag} takes a number of bytes; "${text}" is none.`)
  }
}

function externalOf({
  location,
  threshold,
  alignment,
  shardBytes,
  checksum,
}: ExternalizeChoice): ExternalOptions {
  return {
    ...(location !== undefined && { location }),
    ...(threshold !== undefined && { threshold }),
    ...(alignment !== undefined && { alignment }),
    ...(shardBytes !== undefined && { shardBytes }),
    ...(checksum !== undefined && { checksum }),
  }
}

/** A model without its data would be one whose data nobody finds: it names files from another folder. */
function refuseMissingData(file: OpenFile): void {
  for (const { name, hasData } of file.tensors) {
    if (hasData) continue
    throw new TileworkError(
      'ERR_NO_DATA',
      `The data of ${valueText(name)} are not there; \`tilework check\` says why.`,
    )
  }
}

async function run(
  input: string,
  options: WriteChoice,
  terminal: Terminal,
  write: (file: OpenFile, onProgress: (progress: SaveProgress) => void) => Promise<void>,
): Promise<ExitCode> {
  const file = await openInput(input, options)
  const progress = startProgress('Writing', terminal)
  let byteLength = 0
  try {
    if (!file.onnx) {
      throw new TileworkError('ERR_UNSUPPORTED', `${input} is no ONNX model, so it has no external data.`)
    }
    refuseMissingData(file)
    await write(file, (now) => {
      byteLength = now.bytesTotal
      progress.update(now)
    })
  } finally {
    progress.stop()
    file.close()
  }
  const { output } = options
  const report: ExternalReport = { input, output, byteLength, dataFiles: await dataFilesOf(output) }
  if (options.json) printJson(report, terminal)
  else terminal.stdout.write(formatReport(report))
  return EXIT.ok
}

/** The files beside a model, as it names them now. */
async function dataFilesOf(output: string): Promise<DataFile[]> {
  const written = await openInput(output)
  try {
    const { siblings } = openedFile(written)!
    return [...siblings].map(([name, { byteLength }]) => ({ name, byteLength }))
  } finally {
    written.close()
  }
}

/** The data files of a model lie in its folder, or below it. */
function formatReport({ output, byteLength, dataFiles }: ExternalReport): string {
  const inside = dataFiles.reduce((rest, { byteLength: outside }) => rest - outside, byteLength)
  const files = [
    { path: output, bytes: inside },
    ...dataFiles.map((file) => ({ path: join(dirname(output), file.name), bytes: file.byteLength })),
  ]
  return files.map(({ path, bytes }) => `${printable(path)}: ${formatBytes(bytes)}\n`).join('')
}
