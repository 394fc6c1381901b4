/**
 * How much memory tilework may use for its own work, over all calls of the process: buffers of running saves wait for
 * each other under it, and a single result that is larger is refused. Memory that was handed to the caller is the
 * caller's and is not counted.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { throwIfAborted, untilAborted } from '../cancel.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'

/** Below this the calls would cost more than the work. */
const LEAST_BUFFER_BYTES = 4096

interface Waiting {
  readonly bytes: number
  readonly start: () => void
}

let budget = budgetOfEnvironment()
let borrowed = 0
const queue: Waiting[] = []

/** Bytes from the variable TILEWORK_MEMORY_BUDGET; without it there is no limit. */
function budgetOfEnvironment(): number {
  const text = process.env.TILEWORK_MEMORY_BUDGET
  const value = Number(text)
  if (Number.isSafeInteger(value) && value > 0) return value
  if (text) {
    process.emitWarning(
      `TILEWORK_MEMORY_BUDGET is ${valueText(text)}, no number of bytes above 0; it is ignored.`,
    )
  }
  return Number.POSITIVE_INFINITY
}

/** The budget in bytes; `Infinity` without one. */
export function memoryBudget(): number {
  return budget
}

/**
 * Sets the budget for the whole process. What runs already keeps what it has.
 *
 * @param bytes - at least 1; `Infinity` for no limit
 * @throws TileworkError ERR_ARGUMENT
 */
export function setMemoryBudget(bytes: number): void {
  if (!(bytes === Number.POSITIVE_INFINITY || (Number.isSafeInteger(bytes) && bytes > 0))) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `The memory budget must be a whole number of bytes above 0, or Infinity; it is ${valueText(bytes)}.`,
    )
  }
  budget = bytes
  startWaiting()
}

/** A working buffer of `bytes`, or of a quarter of the budget where that is less. At least a page. */
export function bufferWithinBudget(bytes: number): number {
  return Math.min(bytes, Math.max(LEAST_BUFFER_BYTES, Math.floor(budget / 4)))
}

/** A borrower and all that it calls, a user's source or listener too. */
interface Loan {
  isRunning: boolean
}

const loans = new AsyncLocalStorage<Loan>()

/**
 * Runs `job` when `bytes` fit under the budget. One borrower that wants more than the whole budget goes alone: it would
 * never start otherwise. One inside another (a user's source that saves something itself) does not wait: the other
 * would wait for it.
 *
 * @throws TileworkError ERR_ABORTED when the signal fires before its turn, and what `job` throws
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
    // Without a place in the queue its turn has come, and the memory is already its own.
    if (position < 0) borrowed -= bytes
    else queue.splice(position, 1)
    startWaiting()
    throw error
  }
}

function fits(bytes: number): boolean {
  return borrowed === 0 || borrowed + bytes <= budget
}

/** In the order of their coming, so that a large one is not overtaken for ever. */
function startWaiting(): void {
  for (let next = queue[0]; next && fits(next.bytes); next = queue[0]) {
    queue.shift()
    borrowed += next.bytes
    next.start()
  }
}
