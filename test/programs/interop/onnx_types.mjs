/** Types of ONNX values in the form of `onnx_shapes.py`, and their comparison. */
import { DTYPES } from '../../../dist/index.js'

/** A type in the form of the Python half. */
export function typeRecord(type) {
  switch (type?.kind) {
    case 'tensor':
      return [typeof type.dtype === 'number' ? type.dtype : DTYPES[type.dtype].onnx, type.shape ?? null]
    case 'sequence':
    case 'optional':
      return { [type.kind]: typeRecord(type.of) }
    case 'map':
      return { map: [DTYPES[type.key].onnx, typeRecord(type.value)] }
    default:
      return null
  }
}

/** @param isActual - what is wanted are numbers, and names may be any */
export function compareTypes(found, wanted, isActual = false) {
  if (wanted === null || JSON.stringify(found) === JSON.stringify(wanted))
    return found === null || wanted !== null ? 'same' : 'more'
  if (found === null) return 'unknown'
  if (!Array.isArray(found)) return compareInner(found, wanted, isActual)
  const [code, shape] = found
  if (code !== wanted[0]) return 'different'
  if (wanted[1] === null) return 'more'
  if (shape === null) return 'unknown'
  if (shape.length !== wanted[1].length) return 'different'
  const outcomes = new Set(shape.map((dim, axis) => compareDims(dim, wanted[1][axis], isActual)))
  return ['different', 'unknown', 'more'].find((each) => outcomes.has(each)) ?? 'same'
}

function compareInner(found, wanted, isActual) {
  const [[kind, inner]] = Object.entries(found)
  const [[other, wantedInner]] = Object.entries(wanted)
  if (Array.isArray(wanted) || kind !== other) return 'different'
  return kind === 'map' ? 'different' : compareTypes(inner, wantedInner, isActual)
}

function compareDims(dim, wanted, isActual) {
  if (dim === wanted) return 'same'
  if (dim === null || (isActual && typeof dim === 'string')) return 'unknown'
  return wanted === null ? 'more' : 'different'
}
