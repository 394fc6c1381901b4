/** Lets work run side by side, and work under suspicion alone: when the process dies then, it is known what killed it. */

/** A lock for readers and writers: suspects are the writers, and first come, first served. */
export class Lanes {
  #running = 0
  #isAlone = false
  readonly #waiting: { readonly isAlone: boolean; readonly start: () => void }[] = []

  /** Runs `work`, with nothing else at the same time where `isAlone` is true. */
  async run<T>(isAlone: boolean, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((start) => {
      this.#waiting.push({ isAlone, start })
      this.#startNext()
    })
    try {
      return await work()
    } finally {
      this.#running--
      this.#isAlone = false
      this.#startNext()
    }
  }

  #startNext(): void {
    for (let next = this.#waiting[0]; next && this.#mayStart(next.isAlone); next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#running++
      this.#isAlone = next.isAlone
      next.start()
    }
  }

  #mayStart(isAlone: boolean): boolean {
    return this.#running === 0 || !(isAlone || this.#isAlone)
  }
}
