import type { DenseTensor } from '../../../lib/index.js'

export type RecordedValue = readonly [dtype: string, shape: readonly number[], data: string]

export function differenceOf(
  tensor: DenseTensor,
  expected: RecordedValue,
  mixesZeros?: boolean,
): string | undefined
