/**
 * An amount of something limited that jobs borrow: memory, open files. Jobs that do not fit together wait for each other.
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
  /** A loan of another allowance, or an earlier one, that the borrower runs in. */
  readonly outer: Loan | undefined
  isRunning: boolean
}

/**
 * One for all allowances: Node 20 and 22 pass every storage that was ever used on to every promise, so that one for each remote
 * file would make each file slower than the one before.
 */
const loans = new AsyncLocalStorage<Loan>()

/** The innermost loan that still runs; those that have ended are let go. */
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
   * Runs `job` when `amount` fits into the allowance. A borrower of more than all of it runs alone, since it would never
   * start otherwise. A nested borrower (a caller's source that itself saves) does not wait, since its parent would wait for it.
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
      // Not in the queue any more: it was granted already.
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
