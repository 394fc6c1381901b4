/** `--verify`: runs the original and the result of a command in the caller's onnxruntime-node, before anything is written. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Command, Option } from 'commander'
import { type OpenFile, TileworkError } from '../../index.js'
import {
  type ComparedModel,
  type ComparedOutput,
  type ComparedType,
  type CompareOutputsOptions,
  compareOutputs,
  type OutputComparison,
  type TensorRuntime,
} from '../../onnx.js'
import { openInput, type ReadChoice, readChoice } from '../files/open_input.js'
import { formatCount, formatNumber } from '../text/byte_count.js'
import { wholeNumber } from '../text/parse_number.js'
import { printable, printableName } from '../text/printable.js'

export interface VerifyChoice {
  readonly verify?: boolean
  readonly tolerance?: number
  readonly verifyInputs?: string
  readonly verifySeed?: number
  readonly verifyDim?: Readonly<Record<string, number>>
}

/** The outcome of `--verify`, as JSON has it. */
export interface Verification extends Omit<OutputComparison, 'outputs'> {
  readonly outputs: readonly VerifiedOutput[]
}

export interface VerifiedOutput extends Omit<ComparedOutput, 'error' | 'values'> {
  /** Null where it is infinite. */
  readonly error?: number | null
  readonly maxError?: number | null
  readonly maxRelativeError?: number | null
  readonly meanError?: number | null
  readonly different?: number
  readonly count?: number
  readonly nans?: { readonly a: number; readonly b: number; readonly both: number } | null
}

const PACKAGE = 'onnxruntime-node'

/** Folded weights are packed in another way, and sums of products then have another order: 1e-6 was measured. */
export const OPTIMIZE_TOLERANCE = 1e-5

/** @param tolerances - what holds without `--tolerance`, for the help */
export function addVerifyOptions(command: Command, tolerances: string): Command {
  return command
    .option(
      '--verify',
      'first run input and result in your onnxruntime-node; write only where no output is beyond the tolerance',
    )
    .addOption(
      new Option(
        '--tolerance <x>',
        `with --verify: largest error relative to the largest value of an output (default: ${tolerances})`,
      ).argParser(parseTolerance),
    )
    .option('--verify-inputs <file>', 'with --verify: values of inputs by name, for example an npz')
    .addOption(
      // The library checks the range.
      new Option('--verify-seed <n>', 'with --verify: seed of generated inputs (default: 0)').argParser(
        wholeNumber('--verify-seed'),
      ),
    )
    .addOption(
      new Option(
        '--verify-dim <name=n>',
        'with --verify: size of a symbolic dimension; may be repeated',
      ).argParser(collectDim),
    )
}

function parseTolerance(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (Number.isFinite(value) && value >= 0) return value
  throw new TileworkError('ERR_ARGUMENT', `--tolerance is "${text}"; it must be a number from 0.`)
}

function collectDim(text: string, before: Readonly<Record<string, number>> = {}): Record<string, number> {
  const [, name, size] = /^(.+)=(\d{1,9})$/.exec(text) ?? []
  if (name !== undefined) return { ...before, [name]: Number(size) }
  throw new TileworkError('ERR_ARGUMENT', `--verify-dim takes NAME=N; it is "${text}".`)
}

/** What a comparison of a command needs beside the flags. */
type Settings = Pick<CompareOutputsOptions, 'isPart' | 'renamed'> & {
  /** Of the target, where `--tolerance` gives none. */
  readonly tolerance: number
}

/** Compares results with their original. Holds the runtime and the values of inputs. */
export class Verifier {
  readonly #runtime: TensorRuntime
  readonly #choice: VerifyChoice & ReadChoice
  readonly #inputs: OpenFile | undefined
  readonly #signal: AbortSignal

  private constructor(
    runtime: TensorRuntime,
    choice: VerifyChoice & ReadChoice,
    inputs: OpenFile | undefined,
    signal: AbortSignal,
  ) {
    this.#runtime = runtime
    this.#choice = choice
    this.#inputs = inputs
    this.#signal = signal
  }

  /**
   * Undefined without `--verify`.
   *
   * @throws TileworkError ERR_ARGUMENT for its options without it, ERR_UNSUPPORTED where the package is not installed
   */
  static async of(choice: VerifyChoice & ReadChoice, signal: AbortSignal): Promise<Verifier | undefined> {
    if (!choice.verify) {
      refuseAlone(choice)
      return undefined
    }
    const runtime = await loadRuntime()
    const { verifyInputs } = choice
    const inputs = verifyInputs === undefined ? undefined : await openInput(verifyInputs, choice)
    return new Verifier(runtime, choice, inputs, signal)
  }

  /** @param original - a path or URL, which is opened again: the model that the command opened may have changed */
  async compare(original: string, result: ComparedModel, settings: Settings): Promise<Verification> {
    const { tolerance, verifySeed, verifyDim } = this.#choice
    const inputs = this.#inputs && [...this.#inputs.tensors]
    const { outputs, ...comparison } = await compareOutputs(original, result, {
      ...settings,
      runtime: this.#runtime,
      open: readChoice(this.#choice),
      signal: this.#signal,
      ...(tolerance !== undefined && { tolerance }),
      ...(verifySeed !== undefined && { seed: verifySeed }),
      ...(verifyDim && { dims: verifyDim }),
      ...(inputs && { inputs }),
    })
    return { ...comparison, outputs: outputs.map(verified) }
  }

  close(): void {
    this.#inputs?.close()
  }
}

const FLAGS = {
  tolerance: '--tolerance',
  verifyInputs: '--verify-inputs',
  verifySeed: '--verify-seed',
  verifyDim: '--verify-dim',
} as const

function refuseAlone(choice: VerifyChoice): void {
  for (const [name, flag] of Object.entries(FLAGS)) {
    if (choice[name as keyof typeof FLAGS] === undefined) continue
    throw new TileworkError('ERR_ARGUMENT', `${flag} needs --verify.`)
  }
}

/** From the packages of the current folder, else from those beside tilework. */
async function loadRuntime(): Promise<TensorRuntime> {
  let failure: unknown
  for (const from of [join(process.cwd(), 'package.json'), import.meta.url]) {
    try {
      const path = createRequire(from).resolve(PACKAGE)
      const loaded = (await import(pathToFileURL(path).href)) as TensorRuntime & {
        readonly default?: TensorRuntime
      }
      return loaded.default ?? loaded
    } catch (cause) {
      failure ??= cause
    }
  }
  const message = `--verify runs models in ${PACKAGE}, which cannot be loaded from this folder: npm install ${PACKAGE}`
  throw new TileworkError('ERR_UNSUPPORTED', message, { cause: failure })
}

function verified({ error, values, ...output }: ComparedOutput): VerifiedOutput {
  if (!values) return output
  const { maxError, maxRelativeError, meanError, different, count, nans } = values
  const finite = (value: number | null | undefined): number | null =>
    typeof value === 'number' && Number.isFinite(value) ? value : null
  return {
    ...output,
    error: finite(error),
    maxError: finite(maxError),
    maxRelativeError: finite(maxRelativeError),
    meanError: finite(meanError),
    ...{ different, count, nans },
  }
}

/** A line per output, then the inputs. */
export function verificationLines(verification: Verification): string {
  const { outputs, tolerance, inputs, seed } = verification
  const lines = outputs.map((output) => outputLine(output, tolerance))
  const generated = inputs.filter(({ isGenerated }) => isGenerated)
  if (generated.length > 0) {
    const shapes = generated
      .slice(0, MAX_INPUTS)
      .map(({ name, shape }) => `${printableName(name)} [${shape.join(', ')}]`)
    const more = generated.length > shapes.length ? `, and ${generated.length - shapes.length} more` : ''
    lines.push(`inputs of seed ${seed}: ${shapes.join(', ')}${more}`)
  }
  return lines.map((line) => `${line}\n`).join('')
}

/** Most inputs that the line names. */
const MAX_INPUTS = 8

const STATUS_WORDS = { within: 'verified', beyond: 'differs', 'not compared': 'not compared' } as const

function outputLine(output: VerifiedOutput, tolerance: number): string {
  const { name, status, reason, a, b, original } = output
  const from = original === undefined || original === name ? '' : ` (${printableName(original)} before)`
  const start = `${STATUS_WORDS[status]} ${printableName(name)}${from}`
  if (reason !== undefined) return `${start}: ${printable(reason)}`
  return `${start}: ${typeText(a!, b!)}, ${errorText(output, tolerance)}`
}

function typeText(a: ComparedType, b: ComparedType): string {
  const types = a.dtype === b.dtype ? a.dtype : `${a.dtype} and ${b.dtype}`
  return `${types} [${a.shape.join(', ')}]`
}

function errorText(
  { error, meanError, maxError, different = 0, count = 0, nans }: VerifiedOutput,
  tolerance: number,
): string {
  if (different === 0) return 'equal'
  const parts = [`${formatNumber(different)} of ${formatNumber(count)} elements differ`]
  if (nans && nans.a + nans.b > 0) parts.push(`${formatNumber(nans.a + nans.b)} NaN on one side alone`)
  const numbers = [maxError, meanError].map((value) => (value == null ? '∞' : short(value)))
  parts.push(`error at most ${numbers[0]}, mean ${numbers[1]}`)
  parts.push(`${error == null ? '∞' : short(error)} of the largest value, ${short(tolerance)} allowed`)
  return parts.join(', ')
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)))
}

/** Why a file was not written. */
export function refusalLine(output: string | undefined, { outputs, tolerance }: Verification): string {
  const beyond = outputs.filter(({ status }) => status === 'beyond').length
  const reason =
    beyond > 0
      ? `${formatCount(beyond, 'output')} of ${outputs.length} ${beyond === 1 ? 'is' : 'are'} beyond the tolerance of ${tolerance}`
      : 'no output could be compared'
  return `${output === undefined ? 'not verified' : `${printable(output)} was not written`}: ${reason}.`
}
