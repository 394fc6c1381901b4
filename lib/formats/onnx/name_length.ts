/** The limit of names, which are held as a whole. */
import { FileFault } from '../file_fault.js'
import { MAX_TEXT_BYTES } from './schema.js'

/** @throws FileFault ERR_LIMIT for a name of too many bytes */
export function checkNameLength(start: number, end: number): void {
  if (end - start <= MAX_TEXT_BYTES) return
  throw new FileFault('ERR_LIMIT', `A name has ${end - start} bytes; the limit is ${MAX_TEXT_BYTES}.`, start)
}
