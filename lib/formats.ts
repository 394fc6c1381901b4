/**
 * Types of what the files of one format have, and of what is written to them. `open` gives the objects; `tilework/onnx` and
 * `tilework/tmfile` have the models of those formats and what is done to them.
 *
 * @packageDocumentation
 */
export type { BtfWriteOptions } from './formats/btf/index.js'
export type {
  GgufArray,
  GgufMetadata,
  GgufModel,
  GgufNumbers,
  GgufOptions,
  GgufValue,
  GgufValueInput,
  GgufValueType,
  GgufWriteOptions,
} from './formats/gguf/index.js'
export type { NpyWriteOptions, NpzWriteOptions } from './formats/npy/index.js'
export type { PytorchContainer, PytorchFile, PytorchValue } from './formats/pytorch/index.js'
export type { SafetensorsWriteOptions } from './formats/safetensors/index.js'
export type { TfliteFile, TfliteSignature, TfliteSubgraph, TfliteTensor } from './formats/tflite/index.js'
export type { OnnxWriteOptions } from './models/onnx/index.js'
export type {
  OpenvinoConstantChange,
  OpenvinoFloat16Report,
  OpenvinoModel,
  OpenvinoPort,
} from './models/openvino/index.js'
export type { TmfileWriteOptions } from './models/tmfile/index.js'
