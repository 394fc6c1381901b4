/** Progress over many files: bytes and files, of those that are done and those under way. */
import type { FilePair } from '../../pipeline/many/output_paths.js'
import type { Progress, ProgressState } from './progress.js'

export class FilesProgress {
  readonly #progress: Progress
  readonly #filesTotal: number
  readonly #bytesTotal: number
  /** Bytes done of each file under way; as many as there are jobs. */
  readonly #running = new Map<FilePair, number>()
  #filesDone = 0
  #bytesDone = 0

  constructor(progress: Progress, pairs: readonly FilePair[]) {
    this.#progress = progress
    this.#filesTotal = pairs.length
    this.#bytesTotal = pairs.reduce((sum, { byteLength }) => sum + byteLength, 0)
  }

  begin(pair: FilePair): void {
    this.#running.set(pair, 0)
  }

  /** Outputs may be longer than inputs, so what counts is the part that is done. */
  advance(pair: FilePair, { bytesDone, bytesTotal }: ProgressState): void {
    this.#running.set(pair, bytesTotal === 0 ? 0 : (pair.byteLength * bytesDone) / bytesTotal)
    this.#update()
  }

  end(pair: FilePair): void {
    this.#running.delete(pair)
    this.#filesDone++
    this.#bytesDone += pair.byteLength
    this.#update()
  }

  #update(): void {
    let bytesDone = this.#bytesDone
    for (const bytes of this.#running.values()) bytesDone += bytes
    const state = { bytesDone: Math.floor(bytesDone), bytesTotal: this.#bytesTotal }
    this.#progress.update(state, `${this.#filesDone} of ${this.#filesTotal} files`)
  }
}
