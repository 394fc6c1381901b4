/** Runs jobs in parallel, and suspects (their previous worker crashed) alone: if the process dies then, the suspect killed it. */

/** A fair (first come, first served) readers-writer lock in which suspects are the writers. */
export class Lanes {
  #running = 0
  #isAlone = false
  readonly #waiting: { readonly isAlone: boolean; readonly start: () => void }[] = []

  /** Runs `work`; where `isAlone` is true, nothing else runs at the same time. */
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
