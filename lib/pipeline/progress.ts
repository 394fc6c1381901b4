/** Progress reports of a running save. */

export interface SaveProgress {
  readonly bytesDone: number
  readonly bytesTotal: number
  readonly tensorsDone: number
  readonly tensorsTotal: number
  /** Average since the start. */
  readonly bytesPerSecond: number
  /** Estimated from the average speed; 0 at the end. */
  readonly secondsLeft: number
}

export class ProgressReport {
  #bytesDone = 0
  #tensorsDone = 0
  readonly #bytesTotal: number
  readonly #tensorsTotal: number
  readonly #listener: ((progress: SaveProgress) => void) | undefined
  readonly #started = performance.now()

  constructor(
    bytesTotal: number,
    tensorsTotal: number,
    listener: ((progress: SaveProgress) => void) | undefined,
  ) {
    this.#bytesTotal = bytesTotal
    this.#tensorsTotal = tensorsTotal
    this.#listener = listener
  }

  /** Adds the progress since the last call, and reports. */
  add(bytes: number, tensors: number): void {
    this.#bytesDone += bytes
    this.#tensorsDone += tensors
    if (!this.#listener) return
    const seconds = (performance.now() - this.#started) / 1000
    const bytesPerSecond = seconds > 0 ? this.#bytesDone / seconds : 0
    const bytesLeft = this.#bytesTotal - this.#bytesDone
    this.#listener({
      bytesDone: this.#bytesDone,
      bytesTotal: this.#bytesTotal,
      tensorsDone: this.#tensorsDone,
      tensorsTotal: this.#tensorsTotal,
      bytesPerSecond,
      secondsLeft: bytesPerSecond > 0 ? bytesLeft / bytesPerSecond : 0,
    })
  }
}
