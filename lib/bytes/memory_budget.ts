/**
 * The memory that tilework may use for its own work, over all calls of the process. Saves wait until their memory fits the
 * budget, and a single result larger than the budget is refused. Memory that was returned to the caller is not counted.
 */
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { Allowance } from './allowance.js'

/** Smallest working buffer: with smaller ones, calls cost more than the work. */
const MIN_BUFFER_BYTES = 4096

const budget = new Allowance(budgetOfEnvironment())

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
  return budget.limit
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
  budget.limit = bytes
}

/** Size of a working buffer: `bytes`, but at most a quarter of the budget, and at least a page. */
export function bufferWithinBudget(bytes: number): number {
  return Math.min(bytes, Math.max(MIN_BUFFER_BYTES, Math.floor(budget.limit / 4)))
}

/** Runs `job` when `bytes` fit into the budget. See `Allowance.lend`. */
export function withBorrowedMemory<T>(
  bytes: number,
  signal: AbortSignal | undefined,
  job: () => Promise<T>,
): Promise<T> {
  return budget.lend(bytes, signal, job)
}
