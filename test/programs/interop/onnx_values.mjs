/** Compares a value that tilework computed with a recorded one. */

const NUMBERS = {
  ...{ float32: Float32Array, float64: Float64Array, float16: Uint16Array },
  ...{ int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array },
  ...{
    uint8: Uint8Array,
    uint16: Uint16Array,
    uint32: Uint32Array,
    uint64: BigUint64Array,
    bool: Uint8Array,
  },
}

/**
 * @param {{ dtype: string, shape: readonly number[], bytesSync(): Uint8Array }} tensor
 * @param {readonly [dtype: string, shape: readonly number[], data: string]} expected - with the bytes in base64
 * @param {boolean} mixesZeros - whether 0 and -0 of float32 and float64 are the same
 * @returns {string | undefined} what differs; NaN of any bits are the same
 */
export function differenceOf(tensor, [dtype, shape, data], mixesZeros = false) {
  const kind = `${tensor.dtype} [${tensor.shape}]`
  if (kind !== `${dtype} [${shape}]`) return `${kind}, not ${dtype} [${shape}]`
  const [one, other] = [tensor.bytesSync(), Buffer.from(data, 'base64')].map((bytes) => {
    const copy = Uint8Array.from(bytes)
    return Array.from(new NUMBERS[dtype](copy.buffer))
  })
  const isNaN16 = (bits) => (bits & 0x7fff) > 0x7c00
  const isSame = (left, right) =>
    Object.is(left, right) ||
    (mixesZeros && left === right) ||
    (dtype === 'float16' && isNaN16(left) && isNaN16(right))
  const at = one.findIndex((element, index) => !isSame(element, other[index]))
  return at < 0 ? undefined : `element ${at} is ${text(one[at])}, not ${text(other[at])}`
}

const text = (element) => (Object.is(element, -0) ? '-0' : String(element))
