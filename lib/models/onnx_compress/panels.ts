/**
 * Quantized weights in panels: a panel is computed at once from a part of the weight and gives a run of codes, scales and
 * zero points. The latest panels of all weights of a model are kept, so that scales, which follow the codes in a file, need no second pass
 * over the weight unless it is very large.
 */
import type { Dtype } from '../../dtype/dtypes.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { computedTensor } from './computed_source.js'

/** What one panel gives, in the order in which the tensors store it. */
export interface Panel {
  /** Packed codes. */
  readonly codes: Uint8Array
  readonly scales: Float32Array
  /** Packed zero points. */
  readonly zeros: Uint8Array
}

/** Bytes of the panels that are kept. */
const KEPT_BYTES = 24 * 1024 * 1024

interface Kept {
  readonly panel: Promise<Panel>
  bytes: number
}

/** The latest panels of the weights of one model. */
export class PanelCache {
  /** The weights that were read last are last. */
  readonly #kept = new Map<Panels, Map<number, Kept>>()
  #bytes = 0

  get(panels: Panels, index: number, compute: (index: number) => Promise<Panel>): Promise<Panel> {
    const own = this.#kept.get(panels) ?? new Map<number, Kept>()
    this.#kept.delete(panels)
    this.#kept.set(panels, own)
    const known = own.get(index)
    if (known) return known.panel
    const kept: Kept = { panel: compute(index), bytes: 0 }
    own.set(index, kept)
    kept.panel.then(
      ({ codes, scales, zeros }) => {
        kept.bytes = codes.byteLength + scales.byteLength + zeros.byteLength
        this.#bytes += kept.bytes
        this.#forget()
      },
      () => own.delete(index),
    )
    return kept.panel
  }

  /** Drops the oldest panels, one at a time, until the others fit. Panels that are being computed have no bytes yet. */
  #forget(): void {
    for (const [panels, own] of this.#kept) {
      for (const [index, { bytes }] of own) {
        if (this.#bytes <= KEPT_BYTES) return
        if (bytes === 0) continue
        this.#bytes -= bytes
        own.delete(index)
      }
      if (own.size === 0) this.#kept.delete(panels)
    }
  }
}

export class Panels {
  readonly #cache: PanelCache
  readonly #compute: (index: number) => Promise<Panel>

  constructor(cache: PanelCache, compute: (index: number) => Promise<Panel>) {
    this.#cache = cache
    this.#compute = compute
  }

  get(index: number): Promise<Panel> {
    return this.#cache.get(this, index, this.#compute)
  }

  /** A tensor of one part of each panel. All panels but the last give `panelBytes` bytes. */
  tensor(
    info: { readonly name: string; readonly dtype: Dtype; readonly shape: readonly number[] },
    panelBytes: number,
    part: (panel: Panel) => Uint8Array,
  ): DenseTensor {
    return computedTensor(info, async (start, end) => {
      const bytes = new Uint8Array(end - start)
      for (let at = start; at < end; ) {
        const index = Math.floor(at / panelBytes)
        const from = at - index * panelBytes
        const given = part(await this.get(index)).subarray(from, from + end - at)
        bytes.set(given, at - start)
        at += given.byteLength
      }
      return bytes
    })
  }
}
