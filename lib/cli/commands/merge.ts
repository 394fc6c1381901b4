/** `tilework merge FIRST SECOND -o OUT`: connects two ONNX models to one. */
import { type Command, Option } from 'commander'
import { type OpenFile, save, TileworkError } from '../../index.js'
import { type MergeOptions, mergeModels, type OnnxModel } from '../../onnx.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { addReadOptions, openInput, type ReadChoice } from '../files/open_input.js'
import { formatBytes, formatCount } from '../text/byte_count.js'
import { printable, printJson } from '../text/printable.js'
import { startProgress } from '../text/progress.js'
import type { Terminal } from '../text/terminal.js'
import { collect } from './edit_arguments.js'
import { addOutputOptions, fileOptions, type OutputChoice } from './output_options.js'

interface MergeChoice extends ReadChoice, OutputChoice {
  readonly output: string
  readonly connect?: readonly (readonly [string, string])[]
  readonly prefix1?: string
  readonly prefix2?: string
  readonly inputs?: readonly string[]
  readonly outputs?: readonly string[]
  readonly json?: boolean
}

export interface MergeReport {
  readonly inputs: readonly [string, string]
  readonly output: string
  /** Length of the model and of the data files that were written. */
  readonly byteLength: number
  readonly nodes: number
  /** Names of the inputs of the new model. */
  readonly graphInputs: readonly string[]
  readonly graphOutputs: readonly string[]
}

const HELP = `
Examples:
  tilework merge preprocess.onnx model.onnx --connect image=input -o whole.onnx
  tilework merge a.onnx b.onnx --connect y=x --prefix1 a/ --prefix2 b/ --outputs b/y -o both.onnx

--connect takes names without prefix, --inputs and --outputs names with it. Unconnected inputs and
outputs of both models are kept, unless --inputs or --outputs name others. Names, metadata and
functions of the models must differ; a prefix makes them differ. Opsets must be equal.`

export function addMerge(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('merge')
    .summary('connect two models to one')
    .description('Writes an ONNX model that runs one model and then another on its outputs.')
    .argument('<first>', 'an ONNX model')
    .argument('<second>', 'an ONNX model')
    .requiredOption('-o, --output <file>', 'output file')
    .addOption(
      new Option(
        '--connect <output=input>',
        'connect an output of the first model to an input of the second; may be repeated',
      ).argParser(collectPair),
    )
    .option('--prefix1 <text>', 'prefix for all names of the first model')
    .option('--prefix2 <text>', 'prefix for all names of the second model')
    .option('--inputs <name>', 'keep only this input; may be repeated and sets the order', collect)
    .option('--outputs <name>', 'keep only this output; may be repeated and sets the order', collect)
  addOutputOptions(addReadOptions(command))
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (first: string, second: string, options: MergeChoice) =>
      finish(await merge([first, second], options, terminal)),
    )
}

function collectPair(
  text: string,
  before: readonly (readonly [string, string])[] = [],
): (readonly [string, string])[] {
  const [output, input, ...others] = text.split('=')
  if (output && input && others.length === 0) return [...before, [output, input]]
  throw new TileworkError('ERR_ARGUMENT', `--connect takes OUTPUT=INPUT with one "="; it is "${text}".`)
}

/** Runs the command. */
async function merge(
  inputs: readonly [string, string],
  options: MergeChoice,
  terminal: Terminal,
): Promise<ExitCode> {
  const files: OpenFile[] = []
  try {
    for (const input of inputs) files.push(await openInput(input, options))
    const [first, second] = files.map((file, at) => modelOf(file, inputs[at]!)) as [OnnxModel, OnnxModel]
    const merged = mergeModels(first, second, mergeOptions(options))
    const byteLength = await write(merged, options, terminal)
    const { graph } = merged
    const report: MergeReport = {
      inputs,
      output: options.output,
      byteLength,
      nodes: graph.nodes.length,
      graphInputs: [...graph.inputNames],
      graphOutputs: [...graph.outputNames],
    }
    if (options.json) printJson(report, terminal)
    else terminal.stdout.write(formatReport(report, options.connect !== undefined))
    return EXIT.ok
  } finally {
    for (const file of files) file.close()
  }
}

function modelOf({ onnx, format }: OpenFile, input: string): OnnxModel {
  if (onnx) return onnx
  throw new TileworkError('ERR_UNSUPPORTED', `${input} is ${format}; merge takes ONNX models.`)
}

function mergeOptions({ connect, prefix1, prefix2, inputs, outputs }: MergeChoice): MergeOptions {
  return {
    ...(connect && { ioMap: connect }),
    ...(prefix1 !== undefined && { prefix1 }),
    ...(prefix2 !== undefined && { prefix2 }),
    ...(inputs && { inputs }),
    ...(outputs && { outputs }),
  }
}

/** @returns the number of bytes written */
async function write(model: OnnxModel, options: MergeChoice, terminal: Terminal): Promise<number> {
  const progress = startProgress('Writing', terminal)
  let byteLength = 0
  try {
    await save(options.output, model, {
      format: 'onnx',
      ...fileOptions(options),
      signal: terminal.signal,
      onProgress: (now) => {
        byteLength = now.bytesTotal
        progress.update(now)
      },
    })
    return byteLength
  } finally {
    progress.stop()
  }
}

function formatReport(report: MergeReport, isConnected: boolean): string {
  const { output, byteLength, nodes, graphInputs, graphOutputs } = report
  const ends = (names: readonly string[]): string => names.map((name) => printable(name)).join(', ')
  const apart = isConnected ? '' : 'the models stand side by side; --connect OUTPUT=INPUT connects them\n'
  return `${formatCount(nodes, 'node')} from ${ends(graphInputs)} to ${ends(graphOutputs)}\n${apart}${printable(output)}: ${formatBytes(byteLength)}\n`
}
