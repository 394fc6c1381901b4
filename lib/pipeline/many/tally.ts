/** Counts of a run over many files. Memory does not grow with the number of files: failures are counted by code. */
import { TileworkError } from '../../errors.js'
import type { SaveProgress } from '../progress.js'
import type { FilePair } from './output_paths.js'
import { publicName } from './remote_files.js'

/** Failures with the same error code. */
export interface FailureGroup {
  /** Error code, or `ERR_INTERNAL` for anything that is not a TileworkError. */
  readonly code: string
  readonly count: number
  /** Path of the first input that failed with this code, a URL without its query. */
  readonly first: string
}

/** Counts of the files of a run, by outcome. */
export interface ConvertManySummary {
  readonly files: number
  readonly written: number
  /** Outputs that an earlier run has finished. */
  readonly skipped: number
  readonly failed: number
  /** Total length of the written outputs in bytes. */
  readonly byteLength: number
  /** Failures by code, most frequent first. */
  readonly failures: readonly FailureGroup[]
}

/** A summary so far. */
export interface ConvertManyProgress extends ConvertManySummary {
  /** Processed bytes of inputs, for finished files and files in progress. */
  readonly bytesDone: number
  readonly bytesTotal: number
}

export class Tally {
  readonly #files: number
  readonly #bytesTotal: number
  /** Completed fraction of each file in progress, one entry per job. */
  readonly #running = new Map<FilePair, number>()
  #written = 0
  #skipped = 0
  #failed = 0
  #byteLength = 0
  #bytesDone = 0
  #failures: readonly FailureGroup[] = []

  constructor(pairs: readonly FilePair[]) {
    this.#files = pairs.length
    this.#bytesTotal = pairs.reduce((sum, { byteLength }) => sum + byteLength, 0)
  }

  start(pair: FilePair): void {
    this.#running.set(pair, 0)
  }

  /** Progress is counted as a fraction of the input's bytes, because outputs may be longer than inputs. */
  advance(pair: FilePair, { bytesDone, bytesTotal }: Pick<SaveProgress, 'bytesDone' | 'bytesTotal'>): void {
    this.#running.set(pair, bytesTotal === 0 ? 0 : bytesDone / bytesTotal)
  }

  written(pair: FilePair, byteLength: number): void {
    this.#finish(pair)
    this.#written++
    this.#byteLength += byteLength
  }

  skipped(pair: FilePair): void {
    this.#finish(pair)
    this.#skipped++
  }

  failed(pair: FilePair, error: unknown): void {
    this.#finish(pair)
    this.#failed++
    const code = error instanceof TileworkError ? error.code : 'ERR_INTERNAL'
    const others = this.#failures.filter((group) => group.code !== code)
    const known = this.#failures.find((group) => group.code === code)
    const group = { code, count: (known?.count ?? 0) + 1, first: known?.first ?? publicName(pair.input) }
    this.#failures = [...others, group].sort((one, other) => other.count - one.count)
  }

  #finish(pair: FilePair): void {
    this.#running.delete(pair)
    this.#bytesDone += pair.byteLength
  }

  get done(): number {
    return this.#written + this.#skipped + this.#failed
  }

  summary(): ConvertManySummary {
    return {
      files: this.#files,
      written: this.#written,
      skipped: this.#skipped,
      failed: this.#failed,
      byteLength: this.#byteLength,
      failures: this.#failures,
    }
  }

  progress(): ConvertManyProgress {
    let bytesDone = this.#bytesDone
    for (const [{ byteLength }, fraction] of this.#running) bytesDone += byteLength * fraction
    return { ...this.summary(), bytesDone: Math.floor(bytesDone), bytesTotal: this.#bytesTotal }
  }
}
