/** `tilework edit FILE -o OUT`: changes to the graph of a model. */

import { extname } from 'node:path'
import { type Command, Option } from 'commander'
import { type FormatName, type OpenFile, save, TileworkError } from '../../index.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { addReadOptions, openInput, type ReadChoice } from '../files/open_input.js'
import { formatBytes } from '../text/byte_count.js'
import { printable, printJson } from '../text/printable.js'
import type { Terminal } from '../text/terminal.js'
import {
  collect,
  collectCodes,
  collectFile,
  collectMetadata,
  collectName,
  collectNamedNode,
  collectNode,
  collectOpset,
  collectShape,
  collectType,
  parseBatch,
  passList,
  weightDtype,
} from './edit_arguments.js'
import { ModelChanges } from './edit_changes.js'
import type { EditChoice } from './edit_choice.js'
import { ConstantFiles } from './edit_constants.js'
import { markOptions } from './edit_formats.js'
import { OnnxChanges } from './edit_onnx.js'
import { OpenvinoChanges } from './edit_openvino.js'
import { addOutputOptions, fileOptions, type OutputChoice } from './output_options.js'
import {
  addVerifyOptions,
  OPTIMIZE_TOLERANCE,
  refusalLine,
  type Verification,
  Verifier,
  type VerifyChoice,
  verificationLines,
} from './verify.js'

export interface EditOptions extends ReadChoice, EditChoice, OutputChoice, VerifyChoice {
  readonly output: string
  readonly json?: boolean
}

export interface EditReport {
  readonly input: string
  /** Absent where `--verify` refused to write it. */
  readonly output?: string
  readonly byteLength: number
  /** One description per change, in the order in which they were made. */
  readonly changes: readonly string[]
  /** Reasons why the model may fail although every change was made. */
  readonly notes: readonly string[]
  /** Names of Reshape nodes that may not fit the new shapes. */
  readonly blocked: readonly string[]
  /** Names of tensors whose shapes depend on a changed input and are unknown now. */
  readonly unknown: readonly string[]
  readonly verification?: Verification
}

const EXAMPLES = `
Examples:
  tilework edit model.tmfile --set-input data=1,3,224,224 --rename prob=scores -o out.tmfile
  tilework edit model.tmfile --from conv1 --to pool5 -o backbone.tmfile
  tilework edit model.tmfile --set-batch 8 --strip-weights -o benchmark.tmfile
  tilework edit model.tmfile --replace-constant fc/w=trained.safetensors#head.weight -o out.tmfile
  tilework edit model.tmfile --quantize conv1/w=int8 --quantize 'conv1/b={"dtype":"int32","scales":[0.001]}' -o q.tmfile
  tilework edit model.tmfile --insert-node '{"operator":"ReLu6","name":"r","inputs":["conv1"],"replaces":"conv1"}' -o out.tmfile
  tilework edit model.tmfile --replace-node 'r={"operator":"Clip","params":{"min":0,"max":6}}' -o out.tmfile
  tilework edit old.tmfile --write upgrade -o new.tmfile
  tilework edit model.onnx --weights trained.safetensors -o out.onnx
  tilework edit model.xml --weights trained.safetensors -o out.xml
  tilework edit model.onnx --outputs features --rename features=y --metadata stage=backbone -o part.onnx
  tilework edit model.onnx --optimize --verify -o simple.onnx
  tilework edit model.onnx --optimize remove-identity,fold-weights -o simple.onnx
  tilework edit model.onnx --set-type hidden=float32:N,64 --from hidden --to y -o head.onnx

A node is {"operator", "name", "inputs", "outputs", "params", "constants", "replaces"}, or @FILE with
such an object. Inputs and outputs are tensor names. Params are needed only where they differ from
their defaults (docs/tmfile.md lists them). Without "outputs" the node has one output with its own
name; a node that replaces another one inherits its name, inputs and outputs. "constants" adds
constants by name: {"values": […], "dtype", "shape"} or {"file": "FILE#TENSOR"}. With "replaces" the
first output of an inserted node replaces this tensor as input of all other nodes.
The FILE of a constant may have any format. FILE alone selects the tensor with the name of the
constant, or the only tensor; in FILE#TENSOR, TENSOR is as for --tensor of convert. Quantized values
keep their scales.

--weights replaces constants by the tensors of the same names. It and --replace-constant refuse another
shape or dtype without --force. A node of an ONNX model is selected by its name or the name of one of
its outputs. The dimensions of --set-type are numbers, names, or ? for unknown ones; without
dimensions the rank is unknown, and "scalar" means rank 0. --opset ai.onnx=N sets the version of ONNX's
own operators without converting any node.

Changes are made in the order of this list of options, whatever the order on the command line. OUT
may be the same file as FILE. Bytes that no change affects are kept, unless --write says otherwise.

--verify runs an ONNX model before and after the changes in your onnxruntime-node (npm install
onnxruntime-node), on random inputs or those of --verify-inputs. Where an output is beyond --tolerance,
OUT is not written, and the exit code is 1. After a cut, values inside the old model are compared.`

export function addEdit(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('edit')
    .summary('change the graph of a model')
    .description(
      'Writes a model (tmfile or ONNX) with other input shapes, names, nodes, outputs or constants, or an OpenVINO IR with other constants.',
    )
    .argument('<file>', 'a model')
    .requiredOption('-o, --output <file>', 'output file')
    .addOption(
      new Option(
        '--set-type <name=dtype[:n,n,…]>',
        'declare the type of a value, which --from needs; may be repeated',
      ).argParser(collectType),
    )
  addNodeOptions(command)
  addConstantOptions(command)
  addModelOptions(command)
  markOptions(command)
  addVerifyOptions(command, '0; 0.00001 with --optimize')
  addOutputOptions(addReadOptions(command))
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, options: EditOptions) => finish(await edit(file, options, terminal)))
}

function addNodeOptions(command: Command): void {
  command
    .option(
      '--from <tensor>',
      'cut: keep the nodes after this tensor, which becomes an input; may be repeated',
      collect,
    )
    .option(
      '--to <tensor>',
      'cut: keep the nodes before this tensor, whose node becomes an output; may be repeated',
      collect,
    )
    .option(
      '--outputs <tensor>',
      'make this tensor an output, replacing the current outputs; may be repeated',
      collect,
    )
    .option(
      '--remove-node <node>',
      'remove a node and connect its input to its consumers; may be repeated',
      collect,
    )
    .addOption(
      new Option(
        '--replace-node <node=json>',
        'replace a node by another one, as JSON or =@FILE; may be repeated',
      ).argParser(collectNamedNode),
    )
    .addOption(
      new Option('--insert-node <json>', 'insert a node, as JSON or @FILE; may be repeated').argParser(
        collectNode,
      ),
    )
}

function addConstantOptions(command: Command): void {
  command
    .addOption(
      new Option(
        '--replace-constant <tensor=file>',
        'values of a constant, from a file of any format; may be repeated',
      ).argParser(collectFile),
    )
    .option('--weights <file>', 'replace constants by the tensors of the same names in this file')
    .option('--force', 'allow replaced constants to change shape and dtype')
    .option('--fill-weights <zeros|file>', 'values for all constants without values, by name')
    .option('--dequantize <tensor>', 'dequantize a constant to float32; may be repeated', collect)
    .addOption(
      new Option(
        '--quantize <tensor=type>',
        'quantize a constant: int8, uint8, int32 or JSON { dtype, perChannel, scales, zeroPoints }; may be repeated',
      ).argParser(collectCodes),
    )
}

function addModelOptions(command: Command): void {
  command
    .addOption(
      new Option('--set-input <tensor=n,n,…>', 'shape of an input; may be repeated').argParser(collectShape),
    )
    .addOption(
      new Option(
        '--set-batch <n>',
        'batch size: the first dimension of every input; in ONNX models also a name',
      ).argParser(parseBatch),
    )
    .option('--allow-partial', 'ONNX: change shapes even if nodes do not fit them, and list these nodes')
    .addOption(
      new Option('--rename <old=new>', 'rename tensors and nodes; may be repeated').argParser(collectName),
    )
    .option(
      '--cast-weights <dtype>',
      'cast float constants and activations to this type: float32 or float16',
      weightDtype,
    )
    .option('--merge-constants', 'store equal constants once')
    .option('--remove-unused', 'remove nodes and tensors that no output depends on')
    .addOption(
      new Option(
        '--optimize [passes]',
        'simplify the graph: passes of docs/onnx.md, separated by commas; without a list the default passes',
      ).argParser(passList),
    )
    .option(
      '--channels-last',
      'take and give images as NHWC: Transposes are put in, merged and cancelled; prints how many stay',
    )
    .option(
      '--narrow-ints',
      'store int64 indices and sizes as int32 where their numbers and operators allow it',
    )
    .option('--strip-weights', 'remove the values of all constants, but keep their sizes')
    .option('--strip-names', 'remove all names')
    .addOption(
      new Option('--metadata <key=value>', 'metadata of the model; may be repeated').argParser(
        collectMetadata,
      ),
    )
    .addOption(
      new Option(
        '--opset <version|domain=version>',
        'convert the nodes to another opset of ONNX; with a domain, only set its version; may be repeated',
      ).argParser(collectOpset),
    )
    .addOption(
      new Option('--write <mode>', 'how to write bytes that no change affects')
        .choices(['exact', 'canonical', 'upgrade'])
        .default('exact'),
    )
}

/** Runs the command. */
export async function edit(input: string, options: EditOptions, terminal: Terminal): Promise<ExitCode> {
  const verifier = await Verifier.of(options, terminal.signal)
  try {
    const report = await editInput(input, options, verifier, terminal.signal)
    const { verification } = report
    for (const note of report.notes) terminal.stderr.write(`tilework: ${printable(note)}\n`)
    if (options.json) printJson(report, terminal)
    else terminal.stdout.write(formatReport(report))
    if (verification?.isWithin !== false) return EXIT.ok
    terminal.stderr.write(`tilework: ${refusalLine(options.output, verification)}\n`)
    return EXIT.findings
  } finally {
    verifier?.close()
  }
}

async function editInput(
  input: string,
  options: EditOptions,
  verifier: Verifier | undefined,
  signal: AbortSignal,
): Promise<EditReport> {
  const file = await openInput(input, options)
  try {
    return await editFile(file, input, options, verifier, signal)
  } finally {
    file.close()
  }
}

async function editFile(
  file: OpenFile,
  input: string,
  options: EditOptions,
  verifier: Verifier | undefined,
  signal: AbortSignal,
): Promise<EditReport> {
  const { output, write } = options
  const { format } = file
  checkOutput(input, output, format)
  if (verifier && !file.onnx) {
    throw new TileworkError('ERR_UNSUPPORTED', `--verify runs ONNX models; ${input} is ${format}.`)
  }
  const files = new ConstantFiles(options)
  try {
    const changes = changesOf(file, files)
    if (!changes) {
      const message = `${input} is ${format}; edit changes tmfile and ONNX models, and constants of OpenVINO IR.`
      throw new TileworkError('ERR_UNSUPPORTED', message)
    }
    await changes.make(options)
    const verification =
      changes instanceof OnnxChanges
        ? await verifier?.compare(input, changes.model, verifySettings(options))
        : undefined
    let byteLength = 0
    const isWritten = verification?.isWithin !== false
    if (isWritten) {
      await save(output, changes.model, {
        format,
        signal,
        ...fileOptions(options),
        ...(file.tmfile && write && { mode: write }),
        onProgress: ({ bytesTotal }) => {
          byteLength = bytesTotal
        },
      })
    }
    const { made, notes, blocked, unknown } = changes
    const written = { input, ...(isWritten && { output }), byteLength, changes: made, notes }
    return { ...written, blocked: [...blocked], unknown, ...(verification && { verification }) }
  } finally {
    files.close()
  }
}

function verifySettings({ from, to, outputs, rename = [], optimize }: EditOptions): {
  readonly isPart: boolean
  readonly renamed: Readonly<Record<string, string>>
  readonly tolerance: number
} {
  // By the new name, because a name may be changed again.
  const origins = new Map<string, string>()
  for (const { from: old, to: other } of rename) {
    const origin = origins.get(old) ?? old
    origins.delete(old)
    origins.set(other, origin)
  }
  return {
    isPart: (from ?? to ?? outputs) !== undefined,
    renamed: Object.fromEntries([...origins].map(([name, origin]) => [origin, name])),
    tolerance: optimize ? OPTIMIZE_TOLERANCE : 0,
  }
}

/** Undefined for a file without a model that can be edited. */
function changesOf(
  file: OpenFile,
  files: ConstantFiles,
): ModelChanges | OnnxChanges | OpenvinoChanges | undefined {
  if (file.tmfile) return new ModelChanges(file.tmfile, files)
  if (file.onnx) return new OnnxChanges(file.onnx, files)
  return file.openvino && new OpenvinoChanges(file.openvino, file.tensors, files)
}

/** Refuses an output whose extension does not match the format. */
function checkOutput(input: string, output: string, format: FormatName): void {
  const extension = extname(output).toLowerCase()
  if (['', `.${format}`, extname(input).toLowerCase()].includes(extension)) return
  throw new TileworkError(
    'ERR_ARGUMENT',
    `edit writes the format of its input, ${format}; ${output} has the extension "${extension}".`,
  )
}

/** Most tensors of unknown shape that the text lists. */
const MAX_NAMED = 8

function formatReport(report: EditReport): string {
  const { output, byteLength, changes, blocked, unknown, verification } = report
  const lines = changes.map((change) => printable(change))
  for (const name of blocked) {
    lines.push(`Reshape ${printable(name)} has a fixed target shape, which may not fit the new input shape`)
  }
  if (unknown.length > 0) {
    const named = unknown.slice(0, MAX_NAMED).map((name) => printable(name))
    const more = unknown.length > named.length ? `, and ${unknown.length - named.length} more` : ''
    const what =
      unknown.length === 1
        ? 'the shape of 1 tensor is unknown until the runtime infers it'
        : `the shapes of ${unknown.length} tensors are unknown until the runtime infers them`
    lines.push(`${what}: ${named.join(', ')}${more}`)
  }
  const verified = verification ? verificationLines(verification) : ''
  const end = output === undefined ? '' : `${printable(output)}: ${formatBytes(byteLength)}\n`
  return lines.map((line) => `${line}\n`).join('') + verified + end
}
