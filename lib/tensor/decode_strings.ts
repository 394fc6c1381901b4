/** Strings of a tensor from their bytes. */
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'

/**
 * Decodes UTF-8 as it is, without removing a byte order mark.
 *
 * @param name - of the tensor
 * @throws TileworkError ERR_DTYPE for a string that is not UTF-8
 */
export function decodeStrings(
  strings: Iterable<Uint8Array>,
  name: string,
  format?: string,
): readonly string[] {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  return Array.from(strings, (bytes, index) => {
    try {
      return decoder.decode(bytes)
    } catch (cause) {
      const message = `String ${index} of tensor ${valueText(name)} is not valid UTF-8; rawStrings() returns its bytes.`
      throw new TileworkError('ERR_DTYPE', message, { cause, ...(format !== undefined && { format }) })
    }
  })
}
