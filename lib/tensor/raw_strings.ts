/** The strings of a tensor one by one. An array of ten million of them takes a hundred times the memory of their bytes. */
import { readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import type { StringTensor } from './tensor.js'

/** A string tensor of tilework's own, which keeps its strings packed. */
interface PackedStrings {
  /** The bytes of each string, in row-major order; each is valid until the next. May be iterated more than once. */
  eachRawString(): Promise<Iterable<Uint8Array>>
}

/** As `tensor.rawStrings()`, without an array of them where the tensor is tilework's own. */
export async function eachRawString(tensor: StringTensor): Promise<Iterable<Uint8Array>> {
  const { eachRawString: packed } = tensor as Partial<PackedStrings>
  if (packed !== undefined) return packed.call(tensor)
  const strings: unknown = await tensor.rawStrings()
  return readInput('The strings', () => {
    const list = Array.isArray(strings) ? Array.from(strings as readonly unknown[]) : undefined
    if (list?.every((each) => each instanceof Uint8Array)) return list as Uint8Array[]
    const message = `rawStrings() of tensor ${valueText(tensor.name)} gave ${valueText(strings)}; it must be an array of Uint8Arrays.`
    throw new TileworkError('ERR_ARGUMENT', message)
  })
}
