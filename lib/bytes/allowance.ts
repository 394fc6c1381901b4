/**
 * A weighted semaphore: jobs borrow an amount of a limited resource (memory, open files) and wait until it is available.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { throwIfAborted, untilAborted } from '../cancel.js'

interface Waiting {
  readonly amount: number
  readonly start: () => void
}

/** Marks a borrower and everything that it calls, a caller's source or listener included. */
interface Loan {
  readonly from: Allowance
  /** The enclosing loan, of this or another allowance. */
  readonly outer: Loan | undefined
  isRunning: boolean
}

/**
 * One storage for all allowances. Node 20 and 22 propagate every AsyncLocalStorage that was ever used to every promise, so a
 * storage per remote file would slow down each further file.
 */
const loans = new AsyncLocalStorage<Loan>()

/** The innermost loan that still runs. Ended loans are unlinked, so that they can be collected. */
function runningLoan(): Loan | undefined {
  let loan = loans.getStore()
  while (loan && !loan.isRunning) loan = loan.outer
  return loan
}

export class Allowance {
  #limit: number
  #borrowed = 0
  readonly #queue: Waiting[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  get limit(): number {
    return this.#limit
  }

  /** Running jobs keep what they have. */
  set limit(limit: number) {
    this.#limit = limit
    this.#startWaiting()
  }

  /**
   * Runs `job` when `amount` fits into the allowance. A job that needs more than the whole allowance runs alone; otherwise it
   * would never start. A nested job (a caller's source that itself saves) does not wait: its parent waits for it already.
   *
   * @throws TileworkError ERR_ABORTED when the signal fires during the wait, and what `job` throws
   */
  async lend<T>(amount: number, signal: AbortSignal | undefined, job: () => Promise<T>): Promise<T> {
    if (this.#isBorrower()) this.#borrowed += amount
    else await this.#borrow(amount, signal)
    const loan: Loan = { from: this, outer: runningLoan(), isRunning: true }
    try {
      return await loans.run(loan, job)
    } finally {
      loan.isRunning = false
      this.#borrowed -= amount
      this.#startWaiting()
    }
  }

  /** Whether the caller runs in a loan of this allowance. */
  #isBorrower(): boolean {
    for (let loan = runningLoan(); loan; loan = loan.outer)
      if (loan.from === this && loan.isRunning) return true
    return false
  }

  async #borrow(amount: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#queue.length === 0 && this.#fits(amount)) {
      this.#borrowed += amount
      return
    }
    let waiting: Waiting | undefined
    const turn = new Promise<void>((start) => {
      waiting = { amount, start }
      this.#queue.push(waiting)
    })
    try {
      await untilAborted(turn, signal)
      throwIfAborted(signal)
    } catch (error) {
      const position = this.#queue.indexOf(waiting!)
      // No longer in the queue: the loan was granted already.
      if (position < 0) this.#borrowed -= amount
      else this.#queue.splice(position, 1)
      this.#startWaiting()
      throw error
    }
  }

  #fits(amount: number): boolean {
    return this.#borrowed === 0 || this.#borrowed + amount <= this.#limit
  }

  /** First come, first served: a large borrower must not be overtaken forever. */
  #startWaiting(): void {
    for (let next = this.#queue[0]; next && this.#fits(next.amount); next = this.#queue[0]) {
      this.#queue.shift()
      this.#borrowed += next.amount
      next.start()
    }
  }
}
