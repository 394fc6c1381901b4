/** The fuzzers by name: the format that reads their cases, and what makes the bytes of a seed. */
import type * as Tilework from '../lib/index.js'
import { btf } from './formats/btf.js'
import { npy, npz } from './formats/npy.js'
import { onnx } from './formats/onnx.js'
import { onnxModels } from './formats/onnx_models.js'
import { safetensors } from './formats/safetensors.js'
import { tmfile } from './formats/tmfile.js'
import { damaged, Random } from './random.js'

export interface Target {
  readonly format: string
  /** Whether models are edited, too. */
  readonly edits?: boolean
  make(seed: number): Uint8Array
}

export async function targets({ serialize, tensor }: typeof Tilework): Promise<Record<string, Target>> {
  const models = await Promise.all(
    [1, 2, 5].map((count) =>
      serialize(
        Array.from({ length: count }, (_, index) =>
          tensor(new Float32Array(count), { shape: [count], name: `w${index}` }),
        ),
        { format: 'tmfile' },
      ),
    ),
  )
  const from = (format: string, make: (random: Random) => Uint8Array): Target => ({
    format,
    make: (seed) => {
      const random = new Random(seed)
      return damaged(random, make(random))
    },
  })
  return {
    btf: from('btf', btf),
    models: { ...from('onnx', onnxModels), edits: true },
    npy: from('npy', npy),
    npz: from('npz', npz),
    onnx: from('onnx', onnx),
    safetensors: from('safetensors', safetensors),
    tmfile: from('tmfile', (random) => tmfile(random, models)),
  }
}
