/** Converts many files. A run skips the outputs that an earlier run has finished. */
import { createHash, randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { RemoteOptions } from '../bytes/remote/remote_options.js'
import { systemError } from '../bytes/system_error.js'
import { checkListener } from '../caller_input.js'
import { throwIfAborted, untilAborted } from '../cancel.js'
import { timeLeft } from '../deadline.js'
import { resolveElementType } from '../dtype/block_types.js'
import { TileworkError } from '../errors.js'
import { parseLayout } from '../layout/parse_layout.js'
import { PACKAGE_VERSION } from '../package_version.js'
import type { QuantizeOptions } from '../tensor/quantize.js'
import { valueText } from '../value_text.js'
import {
  type ConvertOptions,
  type ConvertResult,
  convertFile,
  convertOptionNames,
  readConvertOptions,
} from './convert.js'
import { type ConvertInputs, listInputs } from './many/input_list.js'
import { Manifest } from './many/manifest.js'
import type { StateOf } from './many/manifest_entry.js'
import { type FilePair, pairOutputs } from './many/output_paths.js'
import { publicName, stateAt, urlOf } from './many/remote_files.js'
import {
  convertPair,
  type PairConversion,
  type PairOutcome,
  type RunPairsOptions,
  runPairs,
  type SkippedResult,
} from './many/run_pairs.js'
import { checkShard, type Shard, takeShard } from './many/shard.js'
import { type ConvertManyProgress, type ConvertManySummary, Tally } from './many/tally.js'
import { open, pathOf, remoteUrlOf } from './open.js'
import type { SaveProgress } from './progress.js'
import { formatByName } from './registry.js'

export interface ConvertManyOnlyOptions {
  /**
   * Folder of the outputs, or a URL that can be written below; it is created if necessary. An output has the name of its
   * input.
   */
  readonly outDir: string | URL
  /** Keeps the path of each input below this folder or URL. Default: the part of a pattern before its first wildcard. */
  readonly base?: string
  /** Files converted at the same time, up to 256; 0 means one for each CPU. Default: 1. */
  readonly jobs?: number
  /** Continues after a failed file and resolves. Default: the first failure is thrown. */
  readonly keepGoing?: boolean
  /** Converts only this part of the sorted list: one part for each machine. */
  readonly shard?: Shard
  /**
   * Path of the list of finished files, by which the next run skips them. Default: `.tilework-manifest.jsonl` in
   * `outDir`, none where that is a URL; false for none. Objects of other machines are compared by tag and length.
   */
  readonly manifest?: string | false
  /** Converts finished files again. */
  readonly force?: boolean
  /** Called when a file has ended, with the seconds that it took, those in a queue included. */
  readonly onFile?: (outcome: FileOutcome, seconds: number) => void
  /** Called at the start, while files are written, and after `onFile`. */
  readonly onProgress?: (progress: ConvertManyProgress) => void
  /** Called at the start for a manifest with damaged lines, whose files are converted again. */
  readonly onDamagedManifest?: (damage: ManifestDamage) => void
}

/** Options of `convertMany`: those of `convert` for every file, and those of the run. */
export type ConvertManyOptions = Omit<ConvertOptions, 'onProgress'> & ConvertManyOnlyOptions

/** Unreadable lines of a manifest. */
export interface ManifestDamage {
  readonly path: string
  /** Line numbers, from 1. */
  readonly lines: readonly number[]
}

/** The outcome of one file. URLs have no user, password and query. */
export type FileOutcome = { readonly input: string; readonly output: string } & (
  | ({ readonly status: 'written' } & ConvertResult)
  | ({ readonly status: 'skipped' } & SkippedResult)
  | {
      readonly status: 'failed'
      /** `open`: the input could not be opened; `convert`: any later failure. */
      readonly stage: 'open' | 'convert'
      readonly error: unknown
    }
)

const MANIFEST_NAME = '.tilework-manifest.jsonl'

/** Each job has several open files, and many systems limit a process to 1,024. */
const MAX_JOBS = 256

/** Options of a run over many files that `convert` does not have. */
export const MANY_OPTIONS = {
  outDir: true,
  base: true,
  jobs: true,
  keepGoing: true,
  shard: true,
  manifest: true,
  force: true,
  onFile: true,
  onProgress: true,
  onDamagedManifest: true,
} as const satisfies Record<keyof ConvertManyOnlyOptions, true>

/**
 * Converts files into a folder, several at a time, and skips files that an earlier run with the same options has finished and
 * that have not changed since. Memory does not grow with the number of files, except for the list of paths.
 *
 * @param inputs - a path or a URL, a pattern such as `models/**\/*.btf` or `s3://bucket/models/*.npy`, or an iterable of
 * these
 * @throws TileworkError as `convert` for the first failed file, unless `keepGoing` is true; ERR_ARGUMENT where an input matches
 * no file, where two inputs have the same output, and where an output would replace an input; ERR_LIMIT for more than
 * 2,000,000 files; ERR_ABORTED; ERR_IO
 */
export async function convertMany(
  inputs: ConvertInputs,
  given: ConvertManyOptions,
): Promise<ConvertManySummary> {
  const options = readManyOptions(given, 'convertMany')
  return convertList(inputs, options, (run) => {
    const folders = new Set<string>()
    const conversion = conversionOf(run, options)
    return {
      jobs: jobsOf(options),
      perform: (pair) => {
        run.tally.start(pair)
        return convertPair(pair, conversion, folders)
      },
    }
  })
}

function jobsOf({ jobs = 1 }: CheckedManyOptions): number {
  return jobs === 0 ? Math.min(availableParallelism(), MAX_JOBS) : jobs
}

function conversionOf(
  { manifest, settings, onAdvance }: ManyRun,
  options: CheckedManyOptions,
): PairConversion {
  return {
    finished: manifest,
    settings,
    signal: options.signal,
    open: (path, began) => {
      const remote = options.open?.remote
      const limit = timeLeft(options.deadline, began, remote?.deadline)
      return open(path, { ...options.open, remote: { ...remote, ...limit } })
    },
    stateOf: stateOf(options),
    convert: (file, pair, began) => {
      const own = {
        ...timeLeft(options.deadline, began),
        onProgress: (state: SaveProgress) => onAdvance(pair, state),
      }
      return convertFile(file, pair.output, { ...options, ...own })
    },
  }
}

/** Reads the states of inputs and outputs, each with its own request options. */
export function stateOf(options: CheckedManyOptions): StateOf {
  const [input, output] = [inputRemote(options), outputRemote(options)]
  return (path) => stateAt(path, path.startsWith(options.outDir) ? output : input)
}

/** Options of requests for inputs. */
function inputRemote({ open: input, signal }: CheckedManyOptions): RemoteOptions {
  return { ...input?.remote, ...(signal && { signal }) }
}

function outputRemote({ remote, signal }: CheckedManyOptions): RemoteOptions {
  return { ...remote, ...(signal && { signal }) }
}

/** A run whose list is known and whose manifest is open. */
export interface ManyRun {
  readonly pairs: readonly FilePair[]
  readonly manifest: Manifest | undefined
  /** See `settingsHash`. */
  readonly settings: string
  readonly tally: Tally
  /** Reports the progress of a file. */
  onAdvance(pair: FilePair, state: Pick<SaveProgress, 'bytesDone' | 'bytesTotal'>): void
}

/** How the files of a run are converted: in this process, or by workers. */
export type PairPerformer = Pick<RunPairsOptions, 'jobs' | 'perform'>

/**
 * Lists inputs, pairs them with outputs, skips, records and counts; the conversions are done by a performer. Options are
 * checked.
 */
export async function convertList(
  inputs: ConvertInputs,
  options: CheckedManyOptions,
  performerOf: (run: ManyRun) => PairPerformer | Promise<PairPerformer>,
): Promise<ConvertManySummary> {
  const { signal, shard, outDir } = options
  throwIfAborted(signal)
  const pairs = takeShard(await listPairs(inputs, options), shard)
  if (!urlOf(outDir)) await systemError.wrapAsync(outDir, () => mkdir(outDir, { recursive: true }))
  const manifest = await openManifest(pairs, options)
  try {
    if (manifest && manifest.unreadable.length > 0) {
      options.onDamagedManifest?.({ path: manifest.path, lines: manifest.unreadable })
    }
    return await convertPairs(pairs, manifest, options, performerOf)
  } finally {
    await manifest?.close()
  }
}

/** Options that were read once and checked. */
export type CheckedManyOptions = ConvertManyOptions & { readonly outDir: string }

/** Names of all options of a run over many files. */
export function manyOptionNames(): string[] {
  return [...convertOptionNames(), ...Object.keys(MANY_OPTIONS)]
}

/**
 * @param call - the name of the function, for errors
 * @throws TileworkError ERR_ARGUMENT, ERR_LAYOUT_NAME, ERR_NO_DEVICE
 */
export function readManyOptions(given: ConvertManyOptions, call: string): CheckedManyOptions {
  const options = readConvertOptions<ConvertOptions & ConvertManyOptions>(
    given as ConvertOptions & ConvertManyOptions,
    call,
    manyOptionNames(),
  )
  const outDir = remoteUrlOf(options.outDir)?.href ?? pathOf(options.outDir)
  if (outDir === undefined) refuse('outDir', 'a path or a URL', options.outDir)
  const { base, jobs, manifest, shard } = options
  if (base !== undefined && typeof base !== 'string') refuse('base', 'a path', base)
  if (jobs !== undefined && !(Number.isInteger(jobs) && jobs >= 0 && jobs <= MAX_JOBS)) {
    refuse('jobs', `a whole number from 0 (one for each CPU) to ${MAX_JOBS}`, jobs)
  }
  if (manifest !== undefined && manifest !== false && typeof manifest !== 'string') {
    refuse('manifest', 'a path or false', manifest)
  }
  if (shard !== undefined) checkShard(shard)
  for (const name of ['keepGoing', 'force'] as const) {
    const value = options[name]
    if (value !== undefined && typeof value !== 'boolean') refuse(name, 'true or false', value)
  }
  checkListener(options.onFile, 'onFile')
  checkListener(options.onDamagedManifest, 'onDamagedManifest')
  return { ...options, outDir }
}

function refuse(option: string, allowed: string, value: unknown): never {
  throw new TileworkError('ERR_ARGUMENT', `${option} is ${valueText(value)}; it must be ${allowed}.`)
}

async function listPairs(inputs: ConvertInputs, options: CheckedManyOptions): Promise<FilePair[]> {
  const { outDir, base, format, signal } = options
  // An abort must also end an iterable that never finishes.
  const files = await untilAborted(
    listInputs({ inputs, outDir, base, signal, remote: inputRemote(options) }),
    signal,
  )
  return pairOutputs(files, {
    outDir,
    extension: format === undefined ? undefined : formatByName(format).extensions[0],
    reserved: new Map(manifestOf(options).map((path) => [path, 'the manifest'])),
  })
}

/** The path of the manifest, if there is one. Object stores have no default manifest, because they cannot append. */
function manifestOf({ manifest, outDir }: CheckedManyOptions): string[] {
  if (typeof manifest === 'string') return [manifest]
  return manifest === false || urlOf(outDir) ? [] : [join(outDir, MANIFEST_NAME)]
}

async function openManifest(
  pairs: readonly FilePair[],
  options: CheckedManyOptions,
): Promise<Manifest | undefined> {
  const [path] = manifestOf(options)
  if (path === undefined) return undefined
  // With `force` every file is converted, so no entry needs to be loaded.
  const outputs = options.force ? [] : pairs.map(({ output }) => output)
  return Manifest.open(path, outputs)
}

async function convertPairs(
  pairs: readonly FilePair[],
  manifest: Manifest | undefined,
  options: CheckedManyOptions,
  performerOf: (run: ManyRun) => PairPerformer | Promise<PairPerformer>,
): Promise<ConvertManySummary> {
  const { keepGoing = false, signal, onFile, onProgress } = options
  const tally = new Tally(pairs)
  onProgress?.(tally.progress())
  const performer = await performerOf({
    pairs,
    manifest,
    settings: settingsHash(settingsOf(options), PACKAGE_VERSION),
    tally,
    onAdvance: (pair, state) => {
      tally.advance(pair, state)
      onProgress?.(tally.progress())
    },
  })
  const stopReason = await runPairs(pairs, {
    ...performer,
    keepGoing,
    manifest,
    signal,
    onEnd: (pair, outcome, seconds) => {
      count(tally, pair, outcome)
      onFile?.(fileOutcome(pair, outcome), seconds)
      onProgress?.(tally.progress())
    },
  })
  const { done } = tally
  if (signal?.aborted && done < pairs.length) {
    const message = `The conversion was cancelled when ${done} of ${pairs.length} files were done.`
    throw new TileworkError('ERR_ABORTED', message, { cause: signal.reason })
  }
  if (stopReason) throw stopReason.error
  return tally.summary()
}

function count(tally: Tally, pair: FilePair, outcome: PairOutcome): void {
  if (outcome.status === 'failed') tally.failed(pair, outcome.error)
  else if (outcome.status === 'skipped') tally.skipped(pair)
  else tally.written(pair, outcome.result.byteLength)
}

function fileOutcome(pair: FilePair, outcome: PairOutcome): FileOutcome {
  const [input, output] = [publicName(pair.input), publicName(pair.output)]
  if (outcome.status === 'failed') return { input, output, ...outcome }
  return { input, output, status: outcome.status, ...outcome.result } as FileOutcome
}

/** The options that decide the bytes of an output, with canonical layout names. `overwrite` and `replaceGraph` refuse outputs. */
function settingsOf(options: CheckedManyOptions): object {
  const {
    signal,
    countLosses,
    explain,
    open: input,
    device,
    outDir,
    base,
    jobs,
    keepGoing,
    shard,
    manifest,
    force,
    remote,
    overwrite,
    replaceGraph,
    maxOutputBytes,
    deadline,
    ...rest
  } = options
  const { onFile, onProgress, onDamagedManifest, layout, fromLayout, dtype, quantize, ...settings } = rest
  return {
    ...settings,
    layout: layout && parseLayout(layout).name,
    fromLayout: fromLayout && parseLayout(fromLayout).name,
    dtype: dtype && resolveElementType(dtype),
    quantize: quantize && quantizeSettings(quantize),
    openAs: [input?.format, input?.message],
  }
}

function quantizeSettings(options: QuantizeOptions): object {
  const values = (numbers: QuantizeOptions['scale'] | undefined): unknown => {
    if (numbers === undefined || typeof numbers === 'number') return numbers
    // The values of a tensor are not known here. A random value never equals another one, so that every file is converted again.
    return 'length' in numbers ? Array.from(numbers) : randomUUID()
  }
  return { ...options, scale: values(options.scale), zeroPoint: values(options.zeroPoint) }
}

/**
 * Hexadecimal SHA-256 of the settings, independent of the order of their keys; undefined settings count as absent. The version
 * is included, because another version may write different bytes.
 */
export function settingsHash(settings: object, version: string): string {
  return createHash('sha256').update(canonical({ settings, version })).digest('hex')
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => {
    if (typeof inner === 'bigint') return `${inner}n`
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
  })
}
