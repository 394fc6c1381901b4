/** `tilework compress MODEL --to fp16|q8|…`: makes an ONNX model smaller, and reports what changed, what did not, and why. */

import { mkdir } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { type Command, Option } from 'commander'
import type { OpenvinoModel } from '../../formats.js'
import { type OpenFile, save, TileworkError } from '../../index.js'
import { expectedText, nearestText } from '../../internal.js'
import {
  type CompressReport,
  type OnnxModel,
  type QuantizeStaticOptions,
  readRanges,
  tidy,
  type ValueRanges,
  weightErrors,
} from '../../onnx.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { addReadOptions, openInput, type ReadChoice } from '../files/open_input.js'
import { printJson } from '../text/printable.js'
import { startProgress } from '../text/progress.js'
import type { Terminal } from '../text/terminal.js'
import { errorTable } from './compress_errors.js'
import { checkOpenvinoChoice, compressOpenvino } from './compress_openvino.js'
import { formatReport, type TargetReport } from './compress_report.js'
import {
  compressTo,
  TARGET_NAMES,
  TARGETS,
  type Target,
  type TargetName,
  type TargetOptions,
  toleranceOf,
} from './compress_targets.js'
import { addOutputOptions, fileOptions, type OutputChoice } from './output_options.js'
import { addVerifyOptions, refusalLine, Verifier, type VerifyChoice } from './verify.js'

interface CompressChoice extends ReadChoice, OutputChoice, VerifyChoice {
  readonly to: readonly TargetName[]
  readonly output?: string
  readonly outDir?: string
  readonly keepIo?: boolean
  readonly opset?: number | 'auto'
  readonly blockOp?: readonly string[]
  readonly blockNode?: readonly string[]
  readonly blockSize?: number
  readonly asymmetric?: boolean
  readonly accuracyLevel?: number
  readonly gather?: boolean
  readonly gemm?: boolean
  readonly conv?: boolean
  readonly perChannel?: boolean
  readonly reduceRange?: boolean
  readonly exclude?: readonly string[]
  readonly ranges?: string
  readonly activationType?: QuantizeStaticOptions['activationType']
  readonly weightType?: QuantizeStaticOptions['weightType']
  readonly tidy?: boolean
  readonly sensitivity?: boolean
  readonly dryRun?: boolean
  readonly json?: boolean
}

/** Most bytes of weights in the model file: protobuf messages are limited to 2 GiB, of which the graph needs a part. */
const INTERNAL_BYTES = 2 ** 31 - 64 * 1024 * 1024

const HELP = `
Examples:
  tilework compress model.onnx --to fp16 -o model_fp16.onnx
  tilework compress model.onnx --to q4f16 --dry-run
  tilework compress model.xml --to fp16 -o model_fp16.xml
  tilework compress model.onnx --to fp16,q8,q4,q4f16 --out-dir onnx
  tilework compress model.onnx --to q4 --gather --exclude /lm_head/MatMul -o small.onnx
  tilework compress model.onnx --to q4 --sensitivity
  tilework compress model.onnx --to fp16 --verify -o model_fp16.onnx
  tilework compress model.onnx --to qdq --ranges ranges.json -o model_qdq.onnx

  fp16   float16; inputs and outputs stay float32      q4     weights of MatMul in blocks of 4 bits
  q8     8 bits, activations at run time               q4f16  q4, and float16 for the rest
  int8   q8 with int8 weights                          q2     weights of MatMul in blocks of 2 bits
  uint8  q8 with uint8 weights                         q2f16  q2, and float16 for the rest
  fp32   float16 and bfloat16 back to float32          bnb4   weights in blocks of 4 bits (NF4)
                                                       qdq    q4 with operators of ONNX alone

With --out-dir the file names are those that transformers.js expects: model_fp16.onnx, model_quantized.onnx, …
The values of a model of 2 GiB or more are written to one file beside it: model_q4.onnx_data.
Of an OpenVINO IR (.xml), --to fp16 gives what its save_model gives; no other option applies.
--tidy finds weights in Constant nodes, and behind Identity, Transpose, Reshape and Cast; it stores equal weights once.
--dry-run prints what would change, and what would not and why; it writes nothing.
--opset auto converts a model of an earlier opset where a target needs a later one, and says so.
--sensitivity prints the error of each weight, worst first, and writes nothing; --exclude skips such a node.
--verify runs MODEL and each result in your onnxruntime-node first (npm install onnxruntime-node), on random inputs or those
of --verify-inputs: a result with an output beyond --tolerance is not written, and the exit code is 1.
--ranges makes qdq quantize activations, too: JSON { "value": { "min": 0, "max": 1 } }, or a calibration cache of onnxruntime
or TensorRT in any of their forms.`

export function addCompress(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('compress')
    .summary('make an ONNX model smaller (float16, 8 bits, 4 bits), or an OpenVINO IR (float16)')
    .description(
      'Writes an ONNX model with smaller weights. Its graph changes only where the new types require it.',
    )
    .argument('<file>', 'an ONNX model, or an OpenVINO IR')
    .addOption(
      new Option('--to <names…>', `target formats: ${TARGET_NAMES.join(', ')}`)
        .makeOptionMandatory()
        .argParser(collectTarget),
    )
    .option('-o, --output <file>', 'output file, for a single --to')
    .option(
      '--out-dir <dir>',
      'write each --to into this folder, created if necessary, with the file names of transformers.js',
    )
  addFloat16Options(command)
  addQuantizationOptions(command)
  addVerifyOptions(command, '0.02 for fp16 and fp32, 0.1 for 8 bits, 0.4 for fewer')
  addOutputOptions(addReadOptions(command))
    .option(
      '--tidy',
      'first remove Identity and Dropout, fold Transpose and the like into weights, remove unused nodes',
    )
    .addOption(
      new Option(
        '--opset <version>',
        'convert the nodes to this opset first; auto: to the one that the target needs',
      ).argParser(parseOpset),
    )
    .option('--dry-run', 'print what would change, and write nothing')
    .option('--sensitivity', 'print the error of each weight, and write nothing')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (file: string, choice: CompressChoice) => finish(await run(file, choice, terminal)))
}

function addFloat16Options(command: Command): void {
  command
    .option('--keep-io', 'inputs and outputs keep their types; default for fp16, not for fp32')
    .option('--no-keep-io', 'inputs and outputs get the type of the target')
    .option('--block-op <name>', 'operator that stays float32; may be repeated', collect)
    .option('--block-node <name>', 'node that stays float32; may be repeated', collect)
}

function addQuantizationOptions(command: Command): void {
  command
    .option(
      '--block-size <n>',
      'weights that share a scale: a power of two from 16',
      wholeNumber('--block-size'),
    )
    .option('--asymmetric', 'quantize blocks with zero points')
    .option(
      '--accuracy-level <n>',
      'lowest precision inside MatMulNBits, 0 to 4',
      wholeNumber('--accuracy-level'),
    )
    .option('--gather', 'quantize tables of Gather, too')
    .option('--gemm', 'quantize weights of Gemm in blocks, too')
    .option('--conv', 'quantize weights of Conv with a kernel of one element in blocks, too')
    .option('--per-channel', '8 bits: one scale per column')
    .option('--reduce-range', '8 bits: one bit less, for x86 without VNNI')
    .option('--exclude <name>', 'node that is not quantized; may be repeated', collect)
    .option(
      '--ranges <file>',
      'qdq: JSON or calibration cache with ranges of activations, which are then quantized, too',
    )
    .option('--activation-type <type>', 'qdq with --ranges: uint8 (default), int8, uint16 or int16')
    .option('--weight-type <type>', 'qdq with --ranges: int8 (default), uint8, int4, uint4, int16 or uint16')
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** What other tools call these targets. */
const TARGET_ALIASES: Readonly<Record<string, TargetName>> = {
  f16: 'fp16',
  float16: 'fp16',
  half: 'fp16',
  int4: 'q4',
}

/** Names separated by commas, or the option repeated. */
function collectTarget(value: string, before: readonly TargetName[] = []): readonly TargetName[] {
  const names = value.split(',').map((name) => TARGET_ALIASES[name] ?? name)
  const unknown = names.find((name) => !Object.hasOwn(TARGETS, name))
  if (unknown !== undefined) {
    throw new TileworkError('ERR_ARGUMENT', `--to has "${unknown}"${expectedText(unknown, TARGET_NAMES)}`)
  }
  return [...before, ...(names as TargetName[])]
}

/** The library checks the range. */
function parseOpset(text: string): number | 'auto' {
  return text === 'auto' ? text : wholeNumber('--opset')(text)
}

function wholeNumber(flag: string): (text: string) => number {
  return (text) => {
    if (/^\d{1,6}$/.test(text)) return Number(text)
    throw new TileworkError('ERR_ARGUMENT', `${flag} is "${text}"; it must be a whole number.`)
  }
}

/** Refuses unknown node names: a misspelt node would silently be converted. */
function refuseUnknownNodes(model: OnnxModel, { exclude = [], blockNode = [] }: CompressChoice): void {
  const wanted = [
    ...exclude.map((name) => ['--exclude', name]),
    ...blockNode.map((name) => ['--block-node', name]),
  ]
  if (wanted.length === 0) return
  const known = new Set([...model.graphs()].flatMap(({ nodes }) => nodes.map(({ name }) => name)))
  for (const [flag, name] of wanted as [string, string][]) {
    if (known.has(name)) continue
    const message = `${flag}: the model has no node ${JSON.stringify(name)}${nearestText(name, known)}`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
}

async function run(input: string, choice: CompressChoice, terminal: Terminal): Promise<ExitCode> {
  const outputs = outputsOf(input, choice)
  const ranges = await rangesOf(choice)
  if (choice.verify && choice.sensitivity) refuse('--sensitivity makes no model that --verify could run.')
  const verifier = await Verifier.of(choice, terminal.signal)
  try {
    return await runVerified(input, { ...choice, values: ranges }, outputs, verifier, terminal)
  } finally {
    verifier?.close()
  }
}

async function runVerified(
  input: string,
  choice: FullChoice,
  outputs: readonly (readonly [TargetName, string | undefined])[],
  verifier: Verifier | undefined,
  terminal: Terminal,
): Promise<ExitCode> {
  const file = await openInput(input, choice)
  const reports: TargetReport[] = []
  try {
    if (file.openvino) {
      if (verifier) refuse(`--verify runs ONNX models; ${input} is an OpenVINO IR.`)
      const report = await compressIr(file.openvino, input, outputs, choice, terminal)
      if (choice.json) printJson(report, terminal)
      else terminal.stdout.write(formatReport(report, terminal))
      return EXIT.ok
    }
    if (!file.onnx) {
      throw new TileworkError('ERR_UNSUPPORTED', `${input} is neither an ONNX model nor an OpenVINO IR.`)
    }
    refuseMissingData(file)
    refuseUnknownNodes(file.onnx, choice)
    const tidied = choice.tidy ? await tidy(file.onnx, { signal: terminal.signal }) : undefined
    if (choice.sensitivity) {
      for (const [to] of outputs) await printErrors(file.onnx, to, choice, terminal)
      return EXIT.ok
    }
    if (choice.outDir !== undefined && !choice.dryRun) await mkdir(choice.outDir, { recursive: true })
    for (const [to, output] of outputs) {
      const report = {
        input,
        to,
        ...(tidied && { tidied }),
        ...(await compressOne(file.onnx, { input, to, output }, choice, verifier, terminal)),
      }
      reports.push(report)
      // Printed at once: if the next target is refused, the written file must still be reported.
      if (!choice.json) terminal.stdout.write(formatReport(report, terminal))
      const { verification } = report
      if (verification && !verification.isWithin)
        terminal.stderr.write(`tilework: ${refusalLine(output, verification)}\n`)
    }
  } finally {
    file.close()
  }
  if (choice.json) printJson(outputs.length === 1 ? reports[0] : reports, terminal)
  return reports.every(({ verification }) => verification?.isWithin !== false) ? EXIT.ok : EXIT.findings
}

async function compressIr(
  model: OpenvinoModel,
  input: string,
  outputs: readonly (readonly [TargetName, string | undefined])[],
  choice: CompressChoice,
  terminal: Terminal,
): Promise<TargetReport> {
  checkOpenvinoChoice(
    choice,
    outputs.map(([to]) => to),
  )
  const [, output] = outputs[0]!
  if (choice.outDir !== undefined && !choice.dryRun) await mkdir(choice.outDir, { recursive: true })
  return compressOpenvino(model, { input, output }, choice, terminal)
}

/** Flags, and the ranges that a file holds. */
interface FullChoice extends CompressChoice {
  readonly values: ValueRanges | undefined
}

async function rangesOf(choice: CompressChoice): Promise<ValueRanges | undefined> {
  const { ranges, to, activationType, weightType } = choice
  if (ranges === undefined) {
    if (activationType !== undefined) refuse('--activation-type needs --to qdq with --ranges.')
    if (weightType !== undefined)
      refuse('--weight-type needs --to qdq with --ranges; --to int8 and uint8 name it.')
    return undefined
  }
  if (!to.includes('qdq')) refuse('--ranges needs --to qdq.')
  return readRanges(ranges)
}

async function printErrors(
  model: OnnxModel,
  to: TargetName,
  choice: CompressChoice,
  terminal: Terminal,
): Promise<void> {
  const { blockSize, asymmetric, perChannel, reduceRange } = choice
  const isStatic = to === 'qdq' && choice.ranges !== undefined
  const { form, bits }: Target = TARGETS[to]
  if (form === undefined) refuse(`--sensitivity: weights lose nothing as ${to}.`)
  const errors = await weightErrors(model, {
    form: isStatic ? (choice.weightType ?? 'int8') : form,
    ...(isStatic && { static: true }),
    ...(bits !== undefined && { bits }),
    ...(blockSize !== undefined && { blockSize }),
    ...(asymmetric && { symmetric: false }),
    ...(perChannel && { perChannel }),
    ...(reduceRange && { reduceRange }),
    signal: terminal.signal,
  })
  if (choice.json) printJson({ to, errors }, terminal)
  else terminal.stdout.write(errorTable(to, errors, terminal))
}

/** Targets with the paths to write; undefined for a dry run. */
function outputsOf(
  input: string,
  { to, output, outDir, dryRun, sensitivity }: CompressChoice,
): [TargetName, string | undefined][] {
  const names = [...new Set(to)]
  if (dryRun || sensitivity) return names.map((name) => [name, undefined])
  if (output !== undefined && outDir !== undefined)
    refuse('-o and --out-dir both name the output; use one of them.')
  if (output !== undefined && names.length > 1) refuse('Several --to need --out-dir.')
  const extension = /\.xml$/i.test(input) ? '.xml' : '.onnx'
  if (output !== undefined && extname(output).toLowerCase() !== extension) {
    refuse(
      `-o ${output} must end in ${extension}: compress keeps the graph. Use tilework convert for the weights alone.`,
    )
  }
  if (output !== undefined) return [[names[0]!, output]]
  if (outDir === undefined) refuse('Name the output with -o FILE or --out-dir DIR, or use --dry-run.')
  const stem = basename(input, extname(input))
  return names.map((name) => [name, join(outDir, `${stem}${TARGETS[name].suffix}${extension}`)])
}

function refuse(message: string): never {
  throw new TileworkError('ERR_ARGUMENT', message)
}

function refuseMissingData(file: OpenFile): void {
  for (const { name, hasData } of file.tensors) {
    if (hasData) continue
    const reason = file.findings.find(({ code }) => code === 'ERR_IO')?.message ?? ''
    throw new TileworkError('ERR_NO_DATA', `The data of ${JSON.stringify(name)} is missing. ${reason}`.trim())
  }
}

interface CompressJob {
  readonly input: string
  readonly to: TargetName
  /** Absent for a dry run. */
  readonly output: string | undefined
}

async function compressOne(
  original: OnnxModel,
  { input, to, output }: CompressJob,
  choice: FullChoice,
  verifier: Verifier | undefined,
  terminal: Terminal,
): Promise<CompressReport & Pick<TargetReport, 'output' | 'verification'>> {
  const model = original.copy()
  const report = await compressTo(model, to, libraryOptions(choice, terminal.signal))
  const tolerance = toleranceOf(to, choice.values && (choice.weightType ?? 'int8'))
  const verification = await verifier?.compare(input, model, { tolerance })
  const verified = { ...report, ...(verification && { verification }) }
  if (output === undefined || verification?.isWithin === false) return verified
  const progress = startProgress(`Writing ${to}`, terminal)
  try {
    await save(output, model, {
      external: report.bytesAfter < INTERNAL_BYTES ? false : { location: `${basename(output)}_data` },
      ...fileOptions(choice),
      signal: terminal.signal,
      onProgress: (now) => progress.update(now),
    })
  } finally {
    progress.stop()
  }
  return { ...verified, output }
}

function libraryOptions(choice: FullChoice, signal: AbortSignal): TargetOptions {
  const { keepIo, blockOp, blockNode, blockSize, asymmetric, accuracyLevel, gather, gemm, conv } = choice
  const { perChannel, reduceRange, exclude, values, opset, activationType, weightType } = choice
  const raise = opset === 'auto' ? { raiseOpset: true } : {}
  const eightBits = {
    ...(perChannel && { perChannel }),
    ...(reduceRange && { reduceRange }),
    ...(exclude && { exclude }),
    ...raise,
    signal,
  }
  return {
    ...(typeof opset === 'number' && { opset }),
    float32: { ...(keepIo !== undefined && { keepIo }), signal },
    float16: {
      ...(keepIo !== undefined && { keepIo }),
      ...((blockOp || blockNode) && { block: { ops: blockOp ?? [], nodes: blockNode ?? [] } }),
      signal,
    },
    weights: {
      ...(blockSize !== undefined && { blockSize }),
      ...(asymmetric && { symmetric: false }),
      ...(accuracyLevel !== undefined && { accuracyLevel }),
      ...(gather && { gather }),
      ...(gemm && { gemm }),
      ...(conv && { conv }),
      ...(exclude && { nodes: { exclude } }),
      ...raise,
      signal,
    },
    dynamic: eightBits,
    ...(values && {
      static: {
        ranges: values,
        ...(activationType && { activationType }),
        ...(weightType && { weightType }),
        ...eightBits,
      },
    }),
  }
}
