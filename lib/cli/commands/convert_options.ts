/** Translates flags of `convert` to options of the library, and options back to the command that undoes a conversion. */
import type {
  BlockDtype,
  Dtype,
  Finding,
  FormatName,
  ConvertOptions as LibraryOptions,
  MetricsOptions,
  Shard,
  UndoConversion,
  UndoOptions,
  ValueQuantization,
} from '../../index.js'
import { BLOCK_DTYPES, parseLayout, resolveDtype, TileworkError } from '../../index.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { type ReadChoice, readChoice } from '../files/open_input.js'
import { formatShape } from '../text/parse_shape.js'
import { shellQuote } from '../text/shell_quote.js'
import type { InputShape } from './edit_arguments.js'
import { fileOptions, type OutputChoice } from './output_options.js'
import type { VerifyChoice } from './verify.js'

/** The flags that decide what is written for each input. */
export interface TensorFlags {
  readonly tensor?: readonly string[]
  readonly layout?: string
  readonly fromLayout?: string
  readonly shape?: readonly number[]
  /** Padding of `layout` if given, otherwise of `fromLayout`. */
  readonly padLower?: readonly number[]
  readonly padUpper?: readonly number[]
  readonly fromPadLower?: readonly number[]
  readonly fromPadUpper?: readonly number[]
  readonly as?: 'weights'
  readonly dtype?: Dtype | BlockDtype
  readonly format?: string
  readonly device?: string
  readonly weightsOnly?: boolean
  readonly keepIntegers?: boolean
  readonly quantize?: ValueQuantization
  /** Shapes of inputs, where the output has static shapes. */
  readonly inputShape?: readonly InputShape[]
  readonly batch?: number | string
  readonly quantized?: 'keep' | 'dequantize'
}

/** The flags that only runs over many files take. */
export interface ManyFlags {
  readonly base?: string
  readonly stdin?: boolean
  readonly null?: boolean
  readonly jobs?: number
  readonly keepGoing?: boolean
  readonly shard?: Shard
  /** False for no manifest; undefined for the default path in the output folder. */
  readonly manifest?: string | false
  readonly force?: boolean
  /** URL of a queue, whose workers convert the files. */
  readonly queue?: string
  readonly queueName?: string
  readonly attempts?: number
  readonly priority?: number
  /** Where Prometheus can read the counts of the run. */
  readonly metrics?: MetricsOptions
}

export interface ConvertFlags
  extends TensorFlags,
    ManyFlags,
    ReadChoice,
    Partial<OutputChoice>,
    VerifyChoice {
  readonly outDir?: string
  /** Path of the file to which the undo commands are written. */
  readonly undo?: string
  readonly json?: boolean
  /** Seconds. */
  readonly deadline?: number
  /** Says nothing of what was written. */
  readonly quiet?: boolean
  /** For a single file only. */
  readonly explain?: boolean
}

const MANY_FLAGS: Readonly<Record<keyof ManyFlags, string>> = {
  base: '--base',
  stdin: '--stdin',
  null: '--null',
  jobs: '--jobs',
  keepGoing: '--keep-going',
  shard: '--shard',
  manifest: '--manifest and --no-manifest',
  force: '--force',
  queue: '--queue',
  queueName: '--queue-name',
  attempts: '--attempts',
  priority: '--priority',
  metrics: '--metrics',
}

/** The given flags of a run over many files, as they are typed. */
export function manyFlags(flags: ManyFlags): string[] {
  return (Object.keys(MANY_FLAGS) as (keyof ManyFlags)[])
    .filter((name) => flags[name] !== undefined)
    .map((name) => MANY_FLAGS[name])
}

/**
 * Refuses invalid combinations of flags. The library checks the same rules, but its errors name options instead of flags, and
 * `--pad-lower` and `--pad-upper` correspond to two options each.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_LAYOUT_NAME
 */
export function checkFlags(flags: ConvertFlags): void {
  const { layout, fromLayout, shape, padLower, padUpper, fromPadLower, fromPadUpper, as } = flags
  if (fromLayout !== undefined && shape === undefined) {
    refuse('--from-layout needs --shape: the file does not contain the logical shape.')
  }
  if (fromLayout === undefined && (shape ?? fromPadLower ?? fromPadUpper) !== undefined) {
    refuse('--shape, --from-pad-lower and --from-pad-upper need --from-layout.')
  }
  if (layout === undefined && fromLayout === undefined && (padLower ?? padUpper ?? as) !== undefined) {
    refuse('--pad-lower, --pad-upper and --as need --layout or --from-layout.')
  }
  if (layout === undefined && (padLower ?? padUpper) && (fromPadLower ?? fromPadUpper)) {
    refuse('Without --layout, --pad-lower and --pad-upper mean --from-pad-lower and --from-pad-upper.')
  }
  for (const name of [layout, fromLayout]) if (name !== undefined) parseLayout(name)
  if (flags.quantize && (flags.dtype ?? layout ?? fromLayout) !== undefined) {
    refuse('--quantize cannot be combined with --dtype, --layout and --from-layout; convert twice.')
  }
  if (flags.weightsOnly && flags.tensor) {
    refuse('--weights-only and --tensor both select tensors; use one of them.')
  }
  checkQueueFlags(flags)
  if (flags.explain && flags.outDir !== undefined) {
    refuse('--explain describes one file; it cannot be combined with --out-dir.')
  }
  if (flags.verify && flags.outDir !== undefined) {
    refuse('--verify compares one model with its result: name IN and OUT, without --out-dir.')
  }
  const [flag] = flags.outDir === undefined ? manyFlags(flags) : []
  if (flag !== undefined) refuse(`${flag} needs --out-dir.`)
}

/** Flags that each worker sets for its machine, with their default values. */
const WORKER_FLAGS = [
  ['jobs', '--jobs', undefined],
  ['device', '--device', undefined],
  ['maxOutput', '--max-output', undefined],
  ['deadline', '--deadline', undefined],
  ['guard', '--guard', undefined],
  ['symlinks', '--symlinks', 'inside'],
  ['hardLinks', '--hard-links', 'refuse'],
  ['redirects', '--redirects', 'same-host'],
] as const

function checkQueueFlags(flags: ConvertFlags): void {
  const { queue, queueName, attempts, priority } = flags
  if (queue === undefined) {
    if ((queueName ?? attempts ?? priority) === undefined) return
    refuse('--queue-name, --attempts and --priority need --queue.')
  }
  if (flags.clobber === false) {
    refuse('--no-clobber and --queue do not go together: a repeated job would refuse its own output.')
  }
  const set = WORKER_FLAGS.find(([name, , silent]) => flags[name] !== undefined && flags[name] !== silent)
  if (set) refuse(`${set[1]} is an option of each worker: pass it to "tilework worker".`)
}

function refuse(message: string): never {
  throw new TileworkError('ERR_ARGUMENT', message)
}

/** An element type by any of its names, or a block type. */
export function parseDtype(text: string): Dtype | BlockDtype {
  const lower = text.toLowerCase()
  return Object.hasOwn(BLOCK_DTYPES, lower) ? (lower as BlockDtype) : resolveDtype(text)
}

const QUANTIZE_USE = '--quantize takes TYPE, TYPE:AXIS or TYPE:block=N, for example int8:0'

/** `int8`, `int8:0` (a scale per index of axis 0, also `int8:axis`), `int8:block=32` (per block along the last axis). */
export function parseQuantize(text: string): ValueQuantization {
  const [, type, axis, blockSize] =
    /^(\w+)(?::(?:axis=)?(-?\d{1,3}|axis)|:block=(\d{1,9}))?$/.exec(text) ?? []
  if (type === undefined) throw new TileworkError('ERR_ARGUMENT', `${QUANTIZE_USE}; it is "${text}".`)
  return {
    dtype: resolveDtype(type),
    ...(axis !== undefined && { axis: axis === 'axis' ? 0 : Number(axis) }),
    ...(blockSize !== undefined && { blockSize: Number(blockSize) }),
  }
}

/** True where the flags select tensors, which drops the graph. */
export function selectsTensors({ tensor, weightsOnly }: TensorFlags): boolean {
  return tensor !== undefined || weightsOnly === true
}

/** The exit code after writing a file: a model with omitted tensors must not look like a success. */
export function writtenExitCode(findings: readonly Finding[], { tensor }: TensorFlags): ExitCode {
  // Where --tensor names the tensors, all of them were written.
  const isWhole = tensor !== undefined || !findings.some(({ omitsTensor }) => omitsTensor)
  return isWhole ? EXIT.ok : EXIT.findings
}

/** The options of the library for one file. */
export function libraryOptions(flags: ConvertFlags): LibraryOptions {
  const { tensor, layout, fromLayout, shape, padLower, padUpper, fromPadLower, fromPadUpper } = flags
  const { as, dtype, format, device, weightsOnly, quantize, inputShape, batch, quantized } = flags
  const { keepIntegers, deadline } = flags
  const isTargetPadding = layout !== undefined
  const options: { -readonly [Name in keyof LibraryOptions]?: LibraryOptions[Name] | undefined } = {
    tensors: tensor?.map(parseSelector),
    layout,
    fromLayout,
    shape,
    lower: isTargetPadding ? padLower : undefined,
    upper: isTargetPadding ? padUpper : undefined,
    fromLower: fromPadLower ?? (isTargetPadding ? undefined : padLower),
    fromUpper: fromPadUpper ?? (isTargetPadding ? undefined : padUpper),
    as,
    dtype,
    format: format as FormatName | undefined,
    device,
    weightsOnly,
    keepIntegers,
    ...fileOptions(flags),
    quantizeTo: quantize,
    inputShapes:
      inputShape &&
      Object.fromEntries(inputShape.map(({ name, shape }) => [name, shape as readonly number[]])),
    batch,
    quantized,
    // The library does not count the losses of a cast by default; the command line warns of them.
    countLosses: dtype === undefined ? undefined : true,
    explain: flags.explain,
    deadline: deadline && deadline * 1000,
    open: readChoice(flags),
  }
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

/** Prefix of a selector that is always a name. */
const NAME_PREFIX = 'name:'

/** `NAME`, `#INDEX`, or `name:NAME` for a name that starts with `#` or `name:`. */
export function parseSelector(selector: string): string | number {
  // An index even where a tensor has that name, because undo commands select by index.
  const index = /^#(\d+)$/.exec(selector)?.[1]
  if (index !== undefined) return Number(index)
  return selector.startsWith(NAME_PREFIX) ? selector.slice(NAME_PREFIX.length) : selector
}

/** A command that undoes a conversion. */
export interface UndoCommand {
  /** The command line, quoted for a shell. */
  readonly command: string
  /** The same arguments, unquoted, without the program name. */
  readonly args: readonly string[]
}

/** The commands that undo the conversion that wrote `path`. */
export function undoCommands(path: string, undo: readonly UndoConversion[]): UndoCommand[] {
  return undo.map(({ output = '', options }) => {
    const args = ['convert', ...[path, output].map(protectDash), ...undoFlags(options)]
    return { args, command: shellQuote(['tilework', ...args]) }
  })
}

function undoFlags(options: UndoOptions): string[] {
  const { tensors = [], layout, lower, upper, fromLayout, shape, fromLower, fromUpper, as } = options
  // Without --layout the padding flags are those of --from-layout.
  const from = layout === undefined ? '--' : '--from-'
  return [
    ...flag('--from-layout', fromLayout),
    ...flag('--shape', shape && formatShape(shape)),
    ...flag(`${from}pad-lower`, fromLower && formatShape(fromLower)),
    ...flag(`${from}pad-upper`, fromUpper && formatShape(fromUpper)),
    ...flag('--layout', layout),
    ...flag('--pad-lower', lower && formatShape(lower)),
    ...flag('--pad-upper', upper && formatShape(upper)),
    ...flag('--as', as),
    ...tensors.flatMap((index) => ['--tensor', `#${index}`]),
  ]
}

function flag(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : [name, value]
}

/** A path that begins with a dash would be read as a flag. */
function protectDash(path: string): string {
  return path.startsWith('-') ? `./${path}` : path
}
