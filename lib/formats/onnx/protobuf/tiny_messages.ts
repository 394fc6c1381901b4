/**
 * Limits lists of near-empty messages (CWE-770): an empty message has two bytes in the file and costs hundreds in memory.
 *
 * A node with an operator and one output has eleven bytes with its tag. Other messages that occur by the ten thousand have
 * a name and a type, so real files stay above this average.
 */
import { FileFault } from '../../file_fault.js'

/** Lists up to this length are not limited. */
const MAX_UNLIMITED_COUNT = 65_536

/** Minimum average bytes per message of longer lists. */
const MIN_AVERAGE_BYTES = 11

/**
 * @param count - messages of the list so far
 * @param byteLength - total bytes of these messages
 * @throws FileFault ERR_LIMIT
 */
export function checkTinyMessages(count: number, byteLength: number, offset: number): void {
  if (count <= MAX_UNLIMITED_COUNT || byteLength >= MIN_AVERAGE_BYTES * count) return
  const message = `A list has ${count} messages in ${byteLength} bytes; lists beyond ${MAX_UNLIMITED_COUNT} messages must average ${MIN_AVERAGE_BYTES} bytes.`
  throw new FileFault('ERR_LIMIT', message, offset)
}
