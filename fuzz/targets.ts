/** The fuzzers by name: the format that reads their cases, and what makes the bytes of a seed. */
import type * as Tilework from '../lib/index.js'
import { btf } from './formats/btf.js'
import { gguf } from './formats/gguf.js'
import { npy, npz } from './formats/npy.js'
import { onnx } from './formats/onnx.js'
import { onnxModels } from './formats/onnx_models.js'
import { filesOf, openvino } from './formats/openvino.js'
import { pytorch } from './formats/pytorch.js'
import { safetensors } from './formats/safetensors.js'
import { tflite } from './formats/tflite.js'
import { tmfile } from './formats/tmfile.js'
import { damaged, Random } from './random.js'

/** The bytes of a file, and options that name the files beside it. */
export interface Input {
  readonly bytes: Uint8Array
  readonly options: Tilework.OpenOptions
}

export interface Target {
  readonly format: string
  /** Whether models are edited, too. */
  readonly edits?: boolean
  /** How a case that is several files is opened; by default it is one. */
  readonly input?: (bytes: Uint8Array) => Input
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
    gguf: from('gguf', gguf),
    models: { ...from('onnx', onnxModels), edits: true },
    npy: from('npy', npy),
    npz: from('npz', npz),
    onnx: from('onnx', onnx),
    openvino: { ...from('openvino', openvino), input: irOf },
    pytorch: from('pytorch', pytorch),
    safetensors: from('safetensors', safetensors),
    tflite: from('tflite', tflite),
    tmfile: from('tmfile', (random) => tmfile(random, models)),
  }
}

function irOf(bytes: Uint8Array): Input {
  const { xml, bin } = filesOf(bytes)
  return { bytes: xml, options: { resolve: (name) => (name === 'model.bin' ? bin : undefined) } }
}
