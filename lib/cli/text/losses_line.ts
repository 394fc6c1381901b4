/** The warning about a cast that destroys values. */
import type { TensorLosses } from '../../index.js'
import { formatCount } from './byte_count.js'
import { printable } from './printable.js'

/** Tensors that a warning names; more would not be read. */
const MAX_NAMED = 5

/** @param input - of the conversion; undefined where no tensor lost values */
export function lossesLine(input: string, losses: readonly TensorLosses[]): string | undefined {
  const [first] = losses
  if (first === undefined) return undefined
  const named = losses.slice(0, MAX_NAMED).map(({ name, count, saturated, rounded = 0, allZero }) => {
    const parts = [
      ...(saturated > 0 ? [`${saturated} of ${count} are out of range`] : []),
      ...(rounded > 0 ? [`${rounded} of ${count} integers are rounded`] : []),
    ]
    const lost = allZero ? `all ${count} become 0` : parts.join(', ')
    return `${JSON.stringify(name)} (${lost})`
  })
  const more = losses.length > named.length ? `, and ${losses.length - named.length} more` : ''
  const what = formatCount(losses.length, 'tensor')
  const verb = losses.length === 1 ? 'loses' : 'lose'
  return printable(
    `${input}: ${what} ${verb} values as ${first.dtype}: ${named.join(', ')}${more}; ${adviceFor(first)}.`,
  )
}

function adviceFor({ dtype, rounded = 0 }: TensorLosses): string {
  if (rounded > 0) return '--keep-integers leaves integers as they are'
  const isCode = /^u?int[248]$|^u?int16$|^int32$|^float[48]/.test(dtype)
  return `--quantize ${isCode ? dtype : 'int8'} stores quantized values with scales instead`
}
