/**
 * Vectors of all layouts, on which two independent implementations agree: `test/fixtures/SOURCES.md`.
 */
import { readFileSync } from 'node:fs'

export interface VectorRecord {
  readonly format: string
  readonly kind: string
  /** Absent where the layout is the same for all element types. */
  readonly dtype_class?: 'i4'
  readonly logical_dims: string
  readonly shape: number[]
  readonly pad_lower?: number[]
  readonly pad_upper?: number[]
  readonly meaningful: boolean
  readonly unit: 'element' | 'nibble' | 'texel_component'
  readonly logical_count: number
  readonly padded_count: number
  readonly first_offsets: number[]
  readonly offsets_fnv1a64: string
  readonly offsets_sha256: string
}

const FILE = new URL('../fixtures/layout_vectors.json', import.meta.url)

export const records: readonly VectorRecord[] = JSON.parse(readFileSync(FILE, 'utf8')).records
