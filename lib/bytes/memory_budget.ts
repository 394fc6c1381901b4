/**
 * The memory that tilework may use for its own work, over all calls of the process. Saves that do not fit together wait for
 * each other, and a single result beyond the budget is refused. Memory that was returned to the caller is not counted.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { throwIfAborted, untilAborted } from '../cancel.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'

/** Smallest working buffer: with smaller ones, calls cost more than the work. */
const MIN_BUFFER_BYTES = 4096

interface Waiting {
  readonly bytes: number
  readonly start: () => void
}

let budget = budgetOfEnvironment()
let borrowed = 0
const queue: Waiting[] = []

/** The value of TILEWORK_MEMORY_BUDGET in bytes; without it there is no limit. */
function budgetOfEnvironment(): number {
  const text = process.env.TILEWORK_MEMORY_BUDGET
  const value = Number(text)
  if (Number.isSafeInteger(value) && value > 0) return value
  if (text) {
    process.emitWarning(
      `TILEWORK_MEMORY_BUDGET is ${valueText(text)}; it must be a number of bytes above 0 and is ignored.`,
    )
  }
  return Number.POSITIVE_INFINITY
}

/** The budget in bytes; `Infinity` where there is no limit. */
export function memoryBudget(): number {
  return budget
}

/**
 * Sets the budget for the whole process. Running calls keep the memory that they have.
 *
 * @param bytes - at least 1; `Infinity` for no limit
 * @throws TileworkError ERR_ARGUMENT
 */
export function setMemoryBudget(bytes: number): void {
  if (!(bytes === Number.POSITIVE_INFINITY || (Number.isSafeInteger(bytes) && bytes > 0))) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `the memory budget is ${valueText(bytes)}; it must be a whole number of bytes above 0, or Infinity.`,
    )
  }
  budget = bytes
  startWaiting()
}

/** Size of a working buffer: `bytes`, but at most a quarter of the budget, and at least a page. */
export function bufferWithinBudget(bytes: number): number {
  return Math.min(bytes, Math.max(MIN_BUFFER_BYTES, Math.floor(budget / 4)))
}

/** Marks a borrower and everything that it calls, a caller's source or listener included. */
interface Loan {
  isRunning: boolean
}

const loans = new AsyncLocalStorage<Loan>()

/**
 * Runs `job` when `bytes` fit into the budget. A borrower of more than the whole budget runs alone, since it would never start
 * otherwise. A nested borrower (a caller's source that itself saves) does not wait, since its parent would wait for it.
 *
 * @throws TileworkError ERR_ABORTED when the signal fires during the wait, and what `job` throws
 */
export async function withBorrowedMemory<T>(
  bytes: number,
  signal: AbortSignal | undefined,
  job: () => Promise<T>,
): Promise<T> {
  if (loans.getStore()?.isRunning) borrowed += bytes
  else await borrow(bytes, signal)
  const loan: Loan = { isRunning: true }
  try {
    return await loans.run(loan, job)
  } finally {
    loan.isRunning = false
    borrowed -= bytes
    startWaiting()
  }
}

async function borrow(bytes: number, signal: AbortSignal | undefined): Promise<void> {
  if (queue.length === 0 && fits(bytes)) {
    borrowed += bytes
    return
  }
  let waiting: Waiting | undefined
  const turn = new Promise<void>((start) => {
    waiting = { bytes, start }
    queue.push(waiting)
  })
  try {
    await untilAborted(turn, signal)
    throwIfAborted(signal)
  } catch (error) {
    const position = queue.indexOf(waiting!)
    // Not in the queue any more: the memory was granted already.
    if (position < 0) borrowed -= bytes
    else queue.splice(position, 1)
    startWaiting()
    throw error
  }
}

function fits(bytes: number): boolean {
  return borrowed === 0 || borrowed + bytes <= budget
}

/** First come, first served: a large borrower must not be overtaken forever. */
function startWaiting(): void {
  for (let next = queue[0]; next && fits(next.bytes); next = queue[0]) {
    queue.shift()
    borrowed += next.bytes
    next.start()
  }
}
