/**
 * A bound on messages that say nothing: an empty one has two bytes in the file, and costs hundreds in memory as soon as
 * anybody looks at it. A node with an operator and one output has eleven bytes with its tag, and what else is listed by the
 * ten thousands has a name and a type.
 */
import { FileFault } from '../../file_fault.js'

/** So many may be of any size. */
const MOST_OF_ANY_SIZE = 65_536

/** Fewest bytes that messages have on average where there are more. */
const FEWEST_BYTES = 11

/**
 * @param count - messages of a list so far
 * @param byteLength - bytes that they have together
 * @throws FileFault ERR_LIMIT
 */
export function checkTinyMessages(count: number, byteLength: number, offset: number): void {
  if (count <= MOST_OF_ANY_SIZE || byteLength >= FEWEST_BYTES * count) return
  const message = `A list has ${count} messages in ${byteLength} bytes; beyond ${MOST_OF_ANY_SIZE} they must have ${FEWEST_BYTES} on average.`
  throw new FileFault('ERR_LIMIT', message, offset)
}
