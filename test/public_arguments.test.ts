/**
 * Calls every exported function and every method of its results with one wrong argument or option at a time. The
 * outcome is a TileworkError or a success, never another error.
 */

import { mkdirSync, readdirSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, expect, it } from 'vitest'
import * as tilework from '../lib/index.js'
import {
  asTensor,
  check,
  type DenseTensor,
  open,
  parseLayout,
  planReorder,
  serialize,
  setMemoryBudget,
  setThreads,
  sparseFromDense,
  stringTensor,
  TileworkError,
  tensor,
  toDlpack,
} from '../lib/index.js'
import * as internal from '../lib/internal.js'
import * as layoutEntry from '../lib/layout.js'
import * as onnxEntry from '../lib/onnx.js'
import {
  addFunction,
  addPrefix,
  channelsLast,
  convertOpset,
  expandOutputDims,
  extract,
  inferShapes,
  inferTypes,
  initializersToConstants,
  optimize,
  removeFunction,
  setBatch,
  setInputShape,
  stripWeights,
} from '../lib/onnx.js'
import * as queueEntry from '../lib/queue.js'
import * as remote from '../lib/remote.js'
import * as tmfileEntry from '../lib/tmfile.js'
import { temporaryFolder } from './cli/temporary_folder.js'
import { smallModel } from './formats/tmfile/tmfile_bytes.js'
import { addModel } from './models/onnx/small_model.js'

const inFolder = temporaryFolder()
const [threads, budget] = [tilework.threads(), tilework.memoryBudget()]
afterAll(() => {
  setThreads(threads)
  setMemoryBudget(budget)
})

function detached<T extends ArrayBuffer | ArrayBufferView>(memory: T): T {
  const buffer = ArrayBuffer.isView(memory) ? memory.buffer : memory
  structuredClone(memory, { transfer: [buffer as ArrayBuffer] })
  return memory
}

/** New values for each call, because some calls consume them. No string is a file name. */
const WRONG_VALUES: readonly (() => unknown)[] = [
  ...[undefined, null, true, false, 0, 1, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53].map(
    (value) => () => value,
  ),
  ...[1n, -(2n ** 70n), '', Symbol('s'), () => 1].map((value) => () => value),
  ...[() => new Map(), () => new Date(Number.NaN), () => ({}), () => [], () => [null], () => [undefined]],
  ...[() => [1n], () => [{}], () => [[]], () => ['x'], () => [Symbol('s')], () => new Array(3)],
  () => Object.create(null),
  () => ({ kind: 'dense' }),
  () => ({ name: Symbol('n') }),
  () => ({ layout: {} }),
  () => ({ layout: null }),
  () => ({ storage: null }),
  ...[() => new Uint8Array(3), () => new DataView(new ArrayBuffer(4)), () => new SharedArrayBuffer(4)],
  () => new Float64Array(1),
  () => detached(new Uint8Array(4)),
  () => detached(new ArrayBuffer(4)),
  () => detached(new Float32Array(1)),
]

const small = () => tensor([1, 2, 3, 4], { dtype: 'float32', shape: [2, 2], name: 'small' }) as DenseTensor
const codes = () => tensor([1, 2, 3, 4], { dtype: 'int8', shape: [2, 2], name: 'codes' }) as DenseTensor
const sparse = () => sparseFromDense(small())
const bytes = await serialize(small())
const onnxBytes = await serialize(addModel())
const onnx = () => open(onnxBytes)
const parsed = parseLayout('b_fs_yx_fsv16')
const sides = { dtype: 'float32', shape: [1, 2, 1, 1], from: 'bfyx', to: 'byxf', as: 'weights' } as const
const plan = () => planReorder({ dtype: 'int8', shape: [1, 2, 1, 1], from: 'bfyx', to: 'byxf' })
const onProgress = () => undefined
const processor = await tilework.imageProcessor({ image_processor_type: 'ViTImageProcessor', size: 3 })
const photo = (options: object) =>
  tilework.imageToTensor(new Uint8Array(75), { width: 5, height: 5, ...options })
const { signal } = new AbortController()
const model = smallModel
const negNeg = () =>
  onnxEntry.rule({
    name: 'neg-neg',
    match: onnxEntry.node('Neg', [onnxEntry.node('Neg', [onnxEntry.any('x')])]),
    replace: ({ x }) => x,
  })
const weights = { name: 'conv/w', dtype: 'int8', scale: 1, zeroPoint: 0 } as const

/** A server that refuses every command, so that a call with right options ends there. */
const closedQueue = createServer((socket) => {
  socket.on('error', () => undefined)
  socket.on('data', (commands) => {
    for (const _ of String(commands).matchAll(/^\*/gm)) socket.write('-NOAUTH Authentication required.\r\n')
  })
})
await new Promise<void>((resolve) => closedQueue.listen(0, '127.0.0.1', resolve))
closedQueue.unref()
const place = () => ({ url: `redis://127.0.0.1:${(closedQueue.address() as AddressInfo).port}`, name: 'q' })
const queueOptions = () => ({
  ...{
    queue: place(),
    attempts: 2,
    priority: 1,
    window: 10,
    outDir: inFolder('queued'),
    base: inFolder('.'),
  },
  ...{ keepGoing: true, manifest: false, shard: { index: 1, count: 1 }, force: true, dtype: 'float16' },
  ...{ open: { format: 'btf', level: 'strict' }, signal, onProgress, onFile: onProgress },
  onDamagedManifest: onProgress,
})

interface Call {
  // biome-ignore lint/suspicious/noExplicitAny: wrong arguments are what this is about
  readonly run: (...args: any[]) => unknown
  readonly args: () => readonly unknown[]
}

/** Of functions by their names; of methods by the name of what has them. */
const CALLS: Readonly<Record<string, Call>> = {
  affine: {
    run: tilework.affine,
    args: () => [small(), { scale: [1, 2], bias: [0, 1], axis: 0, dtype: 'float16' }],
  },
  'affine by mean': { run: tilework.affine, args: () => [small(), { mean: [1, 2], std: [1, 1], axis: 1 }] },
  asLayout: { run: tilework.asLayout, args: () => [small(), 'row_major', [4], { lower: [0], upper: [0] }] },
  asTensor: { run: asTensor, args: () => [new Uint8Array(4), { dtype: 'int8', shape: [4], name: 'x' }] },
  cast: {
    run: tilework.cast,
    args: () => [small(), 'float8_e4m3fn', { mode: 'onnx', saturate: false, round: 'up' }],
  },
  castLosses: { run: tilework.castLosses, args: () => [small(), 'int8', { signal }] },
  check: { run: check, args: () => [bytes, { ...openOptions(), signal }] },
  checkBiasScales: {
    run: tilework.checkBiasScales,
    args: () => [weights, weights, weights, { tolerance: 0.1 }].map(parameters),
  },
  decodeTensorProto: {
    run: onnxEntry.decodeTensorProto,
    args: () => [{ dims: [1], data_type: 1, float_data: [1], name: 'x' }],
  },
  convert: {
    run: tilework.convert,
    args: () => [
      bytes,
      inFolder('converted.btf'),
      {
        ...{ tensors: [0], dtype: 'int8', quantize: { scale: 1 }, layout: 'bfyx', fromLayout: 'bfyx' },
        ...{ shape: [2, 2, 1, 1], lower: [0, 0, 0, 0], upper: [0, 0, 0, 0], fromLower: [0, 0, 0, 0] },
        ...{ fromUpper: [0, 0, 0, 0], as: 'weights', format: 'btf', open: openOptions(), signal, onProgress },
      },
    ],
  },
  checkConvertOptions: {
    run: internal.checkConvertOptions,
    args: () => ['in.btf', 'out.btf', { format: 'npy', dtype: 'int8', weightsOnly: true }],
  },
  convertMany: {
    run: tilework.convertMany,
    args: () => [
      { path: inFolder('one.btf') },
      {
        ...{ outDir: inFolder('many'), base: inFolder('.'), jobs: 2, keepGoing: true, manifest: false },
        ...{ shard: { index: 1, count: 1 }, force: true, dtype: 'float16', signal, onProgress },
        ...{ onFile: onProgress, onDamagedManifest: onProgress },
      },
    ],
  },
  convertQueued: {
    run: queueEntry.convertQueued,
    args: () => [{ path: inFolder('one.btf') }, queueOptions()],
  },
  submitFiles: { run: queueEntry.submitFiles, args: () => [{ path: inFolder('one.btf') }, queueOptions()] },
  openQueue: { run: async (given) => (await queueEntry.openQueue(given)).close(), args: () => [place()] },
  startWorker: {
    run: async (options) => (await queueEntry.startWorker(options)).stop(),
    args: () => [
      {
        ...{
          queue: place(),
          roots: [inFolder('.')],
          allowSchemes: ['s3'],
          jobs: 1,
          lockMs: 2000,
          graceMs: 0,
        },
        ...{ rate: { files: 1, perMilliseconds: 1 }, maxOutputBytes: 100, remote: { retries: 0 }, signal },
        ...{ open: { mode: 'read', guard: false, symlinks: 'follow', hardLinks: 'allow', limits: {} } },
        onEvent: onProgress,
      },
    ],
  },
  diff: {
    run: tilework.diff,
    args: () => [
      bytes,
      small(),
      {
        tolerance: { absolute: 1, relative: 0.1 },
        ignore: ['name'],
        open: openOptions(),
        signal,
        onProgress,
      },
    ],
  },
  dequantize: {
    run: tilework.dequantize,
    args: () => [codes(), { scale: [1, 2], zeroPoint: [0, 1], axis: 0, dtype: 'float16' }],
  },
  'dequantize by blocks': {
    run: tilework.dequantize,
    args: () => [codes(), { scale: small(), axis: 0, blockSize: 1 }],
  },
  describeLayout: { run: layoutEntry.describeLayout, args: () => [parsed] },
  digest: {
    run: (made, options) => tilework.digest(made, options),
    args: () => [small(), { signal, onBytes: onProgress }],
  },
  devices: { run: tilework.devices, args: () => [] },
  drawLayoutSvg: { run: layoutEntry.drawLayoutSvg, args: () => [parsed, [1, 2, 2, 2], drawOptions()] },
  drawLayoutText: { run: layoutEntry.drawLayoutText, args: () => [parsed, [1, 2, 2, 2], drawOptions()] },
  encodeTensorProto: { run: onnxEntry.encodeTensorProto, args: () => [small(), { raw: true }] },
  explain: { run: tilework.explain, args: () => [small()] },
  fromDlpack: {
    run: async (capsule, options) => tilework.fromDlpack(capsule ?? (await toDlpack(small())), options),
    args: () => [undefined, { name: 'x', maxBytes: 100 }],
  },
  isPattern: { run: internal.isPattern, args: () => ['*.btf'] },
  lazyTensor: {
    run: tilework.lazyTensor,
    args: () => [() => small(), { dtype: 'float32', shape: [2, 2], name: 'x', keep: false }],
  },
  matchFiles: { run: internal.matchFiles, args: () => [inFolder('*.nothing'), { signal }] },
  materialize: {
    run: tilework.materialize,
    args: () => [small(), { device: undefined, out: new Uint8Array(16) }],
  },
  memoryBudget: { run: tilework.memoryBudget, args: () => [] },
  onDevice: { run: tilework.onDevice, args: () => [small(), 'opencl'] },
  open: { run: open, args: () => [bytes, openOptions()] },
  parseLayout: { run: parseLayout, args: () => ['bfyx'] },
  planReorder: { run: planReorder, args: () => [sides] },
  'planReorder with padding': {
    run: (from) => planReorder({ ...sides, as: undefined as never, from }),
    args: () => [{ layout: 'bfyx', lower: [0, 0, 1, 0], upper: [0, 0, 0, 1] }],
  },
  quantizationParameters: {
    run: tilework.quantizationParameters,
    args: () => [{ min: 0, max: 1 }, 'int8', { symmetric: true, rules: 'onnx' }],
  },
  quantize: {
    run: tilework.quantize,
    args: () => [
      small(),
      'int8',
      { scale: [1, 2], zeroPoint: [0, 0], axis: 0, saturate: true, rules: 'tmfile' },
    ],
  },
  readPathList: {
    run: (stream, options) => internal.readPathList(stream, options).next(),
    args: () => [Readable.from(['a\n']), { nul: false }],
  },
  reorder: {
    run: tilework.reorder,
    args: () => [small(), 'bfyx', { lower: [0, 0, 0, 0], upper: [0, 0, 0, 0], as: 'weights' }],
  },
  resolveDtype: { run: tilework.resolveDtype, args: () => ['half'] },
  save: {
    run: tilework.save,
    args: () => [inFolder('saved.btf'), small(), { format: 'btf', signal, onProgress }],
  },
  'save external data': {
    run: async (target, content, options) =>
      tilework.save(target, content === undefined ? await onnx() : content, options),
    args: () => [
      inFolder('external.onnx'),
      undefined,
      { external: { threshold: 0, alignment: 64, checksum: true }, signal, onProgress },
    ],
  },
  'save no external data': {
    run: async (target, content, options) =>
      tilework.save(target, content === undefined ? await onnx() : content, options),
    args: () => [inFolder('internal.onnx'), undefined, { external: false, signal, onProgress }],
  },
  schedulerShard: {
    run: internal.schedulerShard,
    args: () => [{ count: 2, env: { JOB_COMPLETION_INDEX: '1' } }],
  },
  serialize: { run: serialize, args: () => [small(), { format: 'btf', signal, onProgress }] },
  'serialize a model': { run: serialize, args: () => [model(), { mode: 'canonical' }] },
  'serialize many': { run: serialize, args: () => [[small(), codes()], { format: 'safetensors' }] },
  registerScheme: {
    run: remote.registerScheme,
    args: () => ['tilework-test', { open: () => undefined, create: () => undefined, list: () => undefined }],
  },
  startMetrics: {
    run: async (options) => (await tilework.startMetrics(options)).close(),
    args: () => [{ port: 0, host: '127.0.0.1' }],
  },
  setMemoryBudget: { run: setMemoryBudget, args: () => [budget] },
  setThreads: { run: setThreads, args: () => [1] },
  concat: { run: tilework.concat, args: () => [[small(), small()], { axis: 1 }] },
  stack: { run: tilework.stack, args: () => [[small(), small()], { axis: -1 }] },
  'concat with': { run: (other) => tilework.concat([small(), other as never]), args: () => [small()] },
  pad: { run: tilework.pad, args: () => [small(), [1, [0, 2]], { value: 1 }] },
  'pad by a width': { run: (width) => tilework.pad(small(), [width as never]), args: () => [[1, 1]] },
  transpose: { run: tilework.transpose, args: () => [small(), [1, 0]] },
  isDtype: { run: tilework.isDtype, args: () => [small(), 'float32'] },
  split: { run: tilework.split, args: () => [small(), 2, { axis: 0 }] },
  'split at': { run: (at) => tilework.split(small(), [at as never]), args: () => [1] },
  imageToTensor: {
    run: tilework.imageToTensor,
    args: () => [
      new Uint8Array(12),
      {
        width: 2,
        height: 2,
        channels: 3,
        mean: 1,
        std: [1, 2, 3],
        layout: 'nchw',
        dtype: 'float16',
        order: 'bgr',
      },
    ],
  },
  'imageToTensor in steps': {
    run: tilework.imageToTensor,
    args: () => [
      new Uint8Array(16),
      {
        ...{ width: 2, height: 2, channels: 4, pixelFormat: 'planar', alpha: 'drop', background: [1, 2, 3] },
        ...{ colors: 'rgb', resize: { width: 3, height: 1 }, crop: 2, pad: 4, dtype: 'int8' },
        ...{ mean: 128, std: 2, scale: 0.5, zeroPoint: 1 },
      },
    ],
  },
  'imageToTensor with letterbox': {
    run: (letterbox) => photo({ letterbox }),
    args: () => [
      {
        ...{ width: 8, height: 8, center: false, scaleUp: false, auto: true, stride: 4, value: [1, 2, 3] },
        ...{ filter: 'bilinear', like: 'pillow' },
      },
    ],
  },
  'imageToTensor with resize': {
    run: (resize) => photo({ resize }),
    args: () => [{ width: 3, height: 3, filter: 'area', like: 'opencv' }],
  },
  'imageToTensor with a longest edge': {
    run: (resize) => photo({ resize }),
    args: () => [{ shortestEdge: 5, longestEdge: 6 }],
  },
  'imageToTensor with a largest size': {
    run: (resize) => photo({ resize }),
    args: () => [{ maxWidth: 5, maxHeight: 6 }],
  },
  'imageToTensor with crop': {
    run: (crop) => photo({ crop }),
    args: () => [{ width: 3, height: 3, left: 2, top: -1 }],
  },
  'imageToTensor with pad': {
    run: (pad) => photo({ pad }),
    args: () => [{ width: 9, height: 9, position: 'start', value: [1, 2, 3] }],
  },
  'imageToTensor with borders': {
    run: (pad) => photo({ pad }),
    args: () => [{ left: 1, top: 2, right: 3, bottom: 4 }],
  },
  imageProcessor: {
    run: tilework.imageProcessor,
    args: () => [
      { image_processor_type: 'ViTImageProcessor' },
      { backend: 'pil', strict: true, dtype: 'float16', layout: 'nhwc', size: 3, resizeSize: 4 },
    ],
  },
  'imageProcessor of a configuration': {
    run: (config) => tilework.imageProcessor(config, { strict: true }),
    args: () => [
      {
        ...{ image_processor_type: 'DetrImageProcessor', do_resize: true, do_rescale: true, do_pad: true },
        ...{ do_normalize: true, do_center_crop: true, do_convert_rgb: true, rescale_factor: 0.5 },
        ...{ image_mean: [1, 1, 1], image_std: 2, default_to_square: true, resample: 2, max_size: 9 },
        ...{ size: [3, 4], crop_size: 3, pad_size: { height: 5, width: 5 }, crop_pct: 0.5 },
        ...{ keep_aspect_ratio: true, ensure_multiple_of: 2, size_divisor: 2 },
      },
    ],
  },
  ImageProcessor: {
    run: (images, size) => processor(images, size).pixel_values,
    args: () => [new Uint8Array(24), { width: 4, height: 2, channels: 3 }],
  },
  'ImageProcessor.outputSize': { run: processor.outputSize, args: () => [4, 2] },
  fromModelSpace: {
    run: (given, options) => tilework.fromModelSpace(given, options).mask,
    args: () => [
      { boxes: [1, 2, 3, 4], points: new Float32Array([1, 2]), mask: small() },
      { width: 4, height: 2, letterbox: 8, boxFormat: 'center', maskFilter: 'nearest' },
    ],
  },
  'imageToTensor of': {
    run: (given) => tilework.imageToTensor([given as never]),
    args: () => [{ data: new Uint8Array(3), info: { width: 1, height: 1, channels: 3 } }],
  },
  tensorToImage: {
    run: tilework.tensorToImage,
    args: () => [
      tensor(new Float32Array(12), { shape: [3, 2, 2] }),
      { mean: 1, std: [1, 2, 3], layout: 'nchw', order: 'bgr' },
    ],
  },
  'tensorToImage in steps': {
    run: tilework.tensorToImage,
    args: () => [
      tensor(new Float32Array(48), { shape: [3, 4, 4] }),
      {
        crop: { width: 2, height: 3, left: 1, top: 0 },
        resize: { width: 5, height: 6, filter: 'box', like: 'pillow12' },
      },
    ],
  },
  'tensorToImage with letterbox': {
    run: tilework.tensorToImage,
    args: () => [
      tensor(new Float32Array(48), { shape: [3, 4, 4] }),
      { letterbox: { width: 4, height: 4, center: true }, width: 8, height: 4 },
    ],
  },
  slice: { run: tilework.slice, args: () => [small(), [{ start: 0, end: 2, step: 1 }]] },
  'slice by a range': {
    run: (range) => tilework.slice(small(), [range]),
    args: () => [{ start: 0, end: 2, step: 1 }],
  },
  stats: { run: tilework.stats, args: () => [small(), { bins: 4, signal, onBytes: onProgress }] },
  stringTensor: { run: stringTensor, args: () => [['a', 'b'], { shape: [2], name: 'x' }] },
  toFloat16: {
    run: async (options) => onnxEntry.toFloat16((await onnx()).onnx!, options as never),
    args: () => [
      {
        dtype: 'bfloat16',
        keepIo: ['x'],
        block: { ops: ['Add'], nodes: ['n'], only: true },
        clip: { min: 1e-7, max: 1e4 },
        signal,
      },
    ],
  },
  'toFloat16 of': {
    run: (given) => onnxEntry.toFloat16(given as never),
    args: () => [onnxEntry.OnnxModel.create()],
  },
  narrowInts: {
    run: async (options) => onnxEntry.narrowInts((await onnx()).onnx!, options as never),
    args: () => [{ signal }],
  },
  'narrowInts of': {
    run: (given) => onnxEntry.narrowInts(given as never),
    args: () => [onnxEntry.OnnxModel.create()],
  },
  toFloat32: {
    run: async (options) => onnxEntry.toFloat32((await onnx()).onnx!, options as never),
    args: () => [{ keepIo: ['x'], signal }],
  },
  'toFloat32 of': {
    run: (given) => onnxEntry.toFloat32(given as never),
    args: () => [onnxEntry.OnnxModel.create()],
  },
  quantizeDynamic: {
    run: async (options) => onnxEntry.quantizeDynamic((await onnx()).onnx!, options as never),
    args: () => [
      {
        weightType: 'int8',
        perChannel: true,
        reduceRange: true,
        ops: ['MatMul'],
        exclude: ['n'],
        subgraphs: false,
        signal,
      },
    ],
  },
  'quantizeDynamic of': {
    run: (given) => onnxEntry.quantizeDynamic(given as never),
    args: () => [onnxEntry.OnnxModel.create()],
  },
  quantizeStatic: {
    run: async (options) => onnxEntry.quantizeStatic((await onnx()).onnx!, options as never),
    args: () => [
      {
        ranges: { x: { min: -1, max: 1 } },
        activationType: 'uint8',
        weightType: 'int8',
        perChannel: true,
        reduceRange: true,
        ops: ['MatMul'],
        exclude: ['n'],
        signal,
      },
    ],
  },
  'quantizeStatic of': {
    run: (given) => onnxEntry.quantizeStatic(given as never, { ranges: {} }),
    args: () => [onnxEntry.OnnxModel.create()],
  },
  quantizableValues: {
    run: (...args) => onnxEntry.quantizableValues(...(args as never as [onnxEntry.OnnxModel])),
    args: () => [onnxEntry.OnnxModel.create(), { ops: ['MatMul'], exclude: ['n'] }],
  },
  calibrate: {
    run: (...args) => onnxEntry.calibrate(...(args as never as Parameters<typeof onnxEntry.calibrate>)),
    args: () => [
      onnxEntry.OnnxModel.create(),
      [{}],
      {
        runtime: { InferenceSession: { create: async () => ({ run: async () => ({}) }) } },
        method: 'percentile',
        percentile: 99,
        movingAverage: false,
        symmetric: true,
        ops: ['MatMul'],
        exclude: ['n'],
        signal,
      },
    ],
  },
  compareOutputs: {
    run: (...args) =>
      onnxEntry.compareOutputs(...(args as never as Parameters<typeof onnxEntry.compareOutputs>)),
    args: () => [
      addModel(),
      addModel(),
      {
        runtime: {
          InferenceSession: {
            create: async () => ({
              run: async () => ({ y: { type: 'float32', dims: [2], data: new Float32Array(2) } }),
            }),
          },
          Tensor: class {},
        },
        inputs: [tensor(Float32Array.of(1, 2), { name: 'x' })],
        dims: {},
        seed: 1,
        tolerance: 0.5,
        renamed: { w: 'w' },
        isPart: false,
        open: { mode: 'read' },
        signal,
      },
    ],
  },
  weightErrors: {
    run: async (options) => onnxEntry.weightErrors((await onnx()).onnx!, options as never),
    args: () => [
      {
        form: 'blocks',
        bits: 4,
        blockSize: 32,
        symmetric: true,
        perChannel: true,
        static: true,
        reduceRange: true,
        signal,
      },
    ],
  },
  'weightErrors of': {
    run: (given) => onnxEntry.weightErrors(given as never, { form: 'float16' }),
    args: () => [onnxEntry.OnnxModel.create()],
  },
  tidy: {
    run: async (options) => onnxEntry.tidy((await onnx()).onnx!, options as never),
    args: () => [{ fold: 'all', signal }],
  },
  'tidy of': {
    run: (given) => onnxEntry.tidy(given as never),
    args: () => [onnxEntry.OnnxModel.create()],
  },
  optimize: {
    run: async (options) => optimize((await onnx()).onnx!, options as never),
    args: () => [{ only: ['sort', 'fold-shapes'], fuse: true, with: [negNeg()], maxGrowth: 100, signal }],
  },
  rewrite: {
    run: async (rules, options) => onnxEntry.rewrite((await onnx()).onnx!, rules as never, options as never),
    args: () => [[negNeg()], { signal }],
  },
  'rewrite of': {
    run: (given) => onnxEntry.rewrite(given as never, []),
    args: () => [onnxEntry.OnnxModel.create()],
  },
  any: {
    run: (name, options) => onnxEntry.any(name as 'x', options as never),
    args: () => ['x', { dtype: 'float32', rank: 2, maxRank: 3, shape: [1, null] }],
  },
  constant: {
    run: (value, options) => onnxEntry.constant(value as 1, options as never),
    args: () => [1, { as: 'one', dtype: 'float32', rank: 0, maxRank: 1, shape: [] }],
  },
  node: {
    run: (opType, inputs, options) => onnxEntry.node(opType as 'Add', inputs as never, options as never),
    args: () => [
      'Add',
      [onnxEntry.any('x'), onnxEntry.constant(1)],
      {
        ...{ as: 'sum', domain: '', attributes: { axis: 1 }, commutative: true },
        ...{ shared: 'keep', output: 0, outputs: ['y'] },
      },
    ],
  },
  rule: {
    run: (options) => onnxEntry.rule(options as never),
    args: () => [
      {
        ...{ name: 'own', match: onnxEntry.node('Neg'), where: () => true, replace: () => undefined },
        ...{ rounding: true, opsets: { 'my.ops': 1 } },
      },
    ],
  },
  readRanges: {
    run: (input) => onnxEntry.readRanges(input as never),
    args: () => [new TextEncoder().encode('{"x": [0, 1]}')],
  },
  quantizeWeights: {
    run: async (options) => onnxEntry.quantizeWeights((await onnx()).onnx!, options as never),
    args: () => [
      {
        bits: 4,
        blockSize: 32,
        symmetric: true,
        format: 'matmulnbits',
        bnb4: 'nf4',
        gather: false,
        gemm: true,
        conv: true,
        accuracyLevel: 0,
        nodes: { exclude: ['n'], include: ['m'], bits: { m: 8 } },
        signal,
      },
    ],
  },
  'quantizeWeights of': {
    run: (given) => onnxEntry.quantizeWeights(given as never),
    args: () => [onnxEntry.OnnxModel.create()],
  },
  mergeModels: {
    run: async (options) =>
      onnxEntry.mergeModels((await onnx()).onnx!, (await onnx()).onnx!, options as never),
    args: () => [
      {
        ioMap: [['y', 'x']],
        inputs: ['1/x'],
        outputs: ['2/y'],
        prefix1: '1/',
        prefix2: '2/',
        name: 'g',
        docString: 'd',
        producerName: 'p',
        producerVersion: '1',
        domain: 'd',
        modelVersion: 1,
      },
    ],
  },
  'mergeModels of': {
    run: (one, other) => onnxEntry.mergeModels(one as never, other as never, { prefix1: '1', prefix2: '2' }),
    args: () => [onnxEntry.OnnxModel.create(), onnxEntry.OnnxModel.create()],
  },
  printModel: {
    run: async (options) => onnxEntry.printModel((await onnx()).onnx!, options as never),
    args: () => [{ maxElements: 4 }],
  },
  'printModel of': {
    run: (given) => onnxEntry.printModel(given as never),
    args: () => [onnxEntry.OnnxModel.create()],
  },
  addFunction: {
    run: async (added) => addFunction((await onnx()).onnx!, added as never),
    args: () => [{ domain: 'own', name: 'F', inputs: ['a'], outputs: ['b'], nodes: [] }],
  },
  removeFunction: {
    run: async (domain, name, overload) =>
      removeFunction((await onnx()).onnx!, domain as never, name as never, overload as never),
    args: () => ['own', 'F', ''],
  },
  extract: {
    run: async (inputs, outputs) => extract((await onnx()).onnx!, inputs as never, outputs as never),
    args: () => [['x'], ['y']],
  },
  initializersToConstants: {
    run: async (names) => initializersToConstants((await onnx()).onnx!, names as never),
    args: () => [['w']],
  },
  setBatch: { run: async (batch) => setBatch((await onnx()).onnx!, batch as never), args: () => [2] },
  setInputShape: {
    run: async (name, shape) => setInputShape((await onnx()).onnx!, name as never, shape as never),
    args: () => ['x', [2]],
  },
  channelsLast: { run: channelsLast, args: () => [onnxEntry.OnnxModel.create()] },
  inferShapes: { run: inferShapes, args: () => [onnxEntry.OnnxModel.create()] },
  inferTypes: { run: inferTypes, args: () => [onnxEntry.OnnxModel.create()] },
  stripWeights: { run: stripWeights, args: () => [onnxEntry.OnnxModel.create()] },
  convertOpset: {
    run: async (version) => void convertOpset((await onnx()).onnx!, version as never),
    args: () => [21],
  },
  addPrefix: {
    run: async (prefix, options) => addPrefix((await onnx()).onnx!, prefix as never, options as never),
    args: () => [
      'p',
      { nodes: true, values: true, inputs: true, outputs: true, initializers: true, functions: true },
    ],
  },
  expandOutputDims: {
    run: async (axis) => expandOutputDims((await onnx()).onnx!, axis as never),
    args: () => [0],
  },
  'Graph.removeInput': {
    run: async (name) => {
      const { graph } = (await onnx()).onnx!
      graph.setInitializer('x', small())
      graph.removeInput(name as never)
    },
    args: () => ['x'],
  },
  'Graph.removeOutput': {
    run: async (name) => (await onnx()).onnx!.graph.removeOutput(name as never),
    args: () => ['y'],
  },
  'Graph.reorderInputs': {
    run: async (names) => (await onnx()).onnx!.graph.reorderInputs(names as never),
    args: () => [['x']],
  },
  'Graph.reorderOutputs': {
    run: async (names) => (await onnx()).onnx!.graph.reorderOutputs(names as never),
    args: () => [['y']],
  },
  summarizeOnnx: { run: onnxEntry.summarizeOnnx, args: () => [onnxEntry.OnnxModel.create()] },
  summarizeTmfile: {
    run: tmfileEntry.summarizeTmfile,
    args: () => [smallModel()],
  },
  dumpTmfile: { run: tmfileEntry.dumpTmfile, args: () => [smallModel()] },
  onnxToTmfile: {
    run: (model, options) => tmfileEntry.onnxToTmfile(model as never, options as never),
    args: () => [onnxEntry.OnnxModel.create(), { batch: 2 }],
  },
  tmfileToOnnx: { run: tmfileEntry.tmfileToOnnx, args: () => [smallModel(), { batch: 2 }] },
  sparseFromDense: { run: sparseFromDense, args: () => [small(), { name: 'x', keepZeros: true }] },
  summarizeTensor: {
    run: (made) => void internal.summarizeTensor(made),
    args: () => [small()],
  },
  swapBitOrder: { run: tilework.swapBitOrder, args: () => [new Uint8Array(2), 'int4'] },
  tensor: { run: tensor, args: () => [[1, 2], { dtype: 'float32', shape: [2], name: 'x' }] },
  threads: { run: tilework.threads, args: () => [] },
  toDlpack: { run: toDlpack, args: () => [small(), { legacy: true }] },

  'OpenFile.dense': { run: async (key) => (await open(bytes)).dense(key), args: () => [0] },
  'OpenFile.sparse': { run: async (key) => (await open(bytes)).sparse(key), args: () => [0] },
  'OpenFile.close': {
    run: async (options) => (await open(bytes)).close(options),
    args: () => [{ revoke: true }],
  },
  'OpenFile.tensors.at': { run: async (index) => (await open(bytes)).tensors.at(index), args: () => [0] },
  'OpenFile.tensors.get': {
    run: async (name) => (await open(bytes)).tensors.get(name),
    args: () => ['small'],
  },
  'Layout.storage': {
    run: (...args) => parsed.storage(...(args as [never])),
    args: () => [[1, 2, 2, 2], { dtype: 'int8', lower: [0, 0, 0, 0], upper: [0, 0, 0, 0] }],
  },
  'ReorderPlan.run': {
    run: (...args) => plan().run(...(args as [never, never])),
    args: () => [new Uint8Array(2), new Uint8Array(2), { signal }],
  },
  'ReorderPlan.runSync': {
    run: (...args) => plan().runSync(...(args as [never, never])),
    args: () => [new Uint8Array(2), new Uint8Array(2)],
  },
  'DenseTensor.at': { run: (...index) => small().at(...index), args: () => [0, 1] },
  'DenseTensor.bits': { run: () => codes().bits(), args: () => [] },
  'DenseTensor.bytes': { run: (range) => small().bytes(range), args: () => [{ start: 0, end: 4 }] },
  'DenseTensor.bytesSync': { run: (range) => small().bytesSync(range), args: () => [{ start: 0, end: 4 }] },
  'DenseTensor.copyTo': {
    run: (...args) => small().copyTo(...(args as [never])),
    args: () => [new Uint8Array(4), { start: 4 }],
  },
  'DenseTensor.copyToSync': {
    run: (...args) => small().copyToSync(...(args as [never])),
    args: () => [new Uint8Array(4), { start: 4 }],
  },
  'DenseTensor.toTypedArray': {
    run: (options) => small().toTypedArray(options),
    args: () => [{ float16: false }],
  },
  'SparseTensor.toDense': {
    run: async (options) => (await sparse()).toDense(options),
    args: () => [{ maxBytes: 100 }],
  },

  'tmfile.addConstant': {
    run: tmfileEntry.addConstant,
    args: () => [model(), 'c', small(), null],
  },
  'tmfile.castWeights': { run: tmfileEntry.castWeights, args: () => [model(), 'float16'] },
  'tmfile.createNode': {
    run: tmfileEntry.createNode,
    args: () => [
      model(),
      {
        operator: 'Concat',
        operatorNumber: 3,
        operatorVersion: 1,
        name: 'n',
        inputs: ['conv'],
        outputs: ['n'],
        params: { axis: 1 },
      },
    ],
  },
  'tmfile.cut': { run: tmfileEntry.cut, args: () => [model(), ['data'], ['conv']] },
  'tmfile.dequantizeConstant': { run: tmfileEntry.dequantizeConstant, args: () => [model(), 'conv/w'] },
  'tmfile.fillWeights': { run: tmfileEntry.fillWeights, args: () => [stripped(), () => null] },
  'tmfile.insertNode': {
    run: (made, node, index) =>
      tmfileEntry.insertNode(
        made as never,
        (node === undefined ? reluOf(made as never) : node) as never,
        index as never,
      ),
    args: () => [model(), undefined, 4],
  },
  'tmfile.mergeConstants': { run: tmfileEntry.mergeConstants, args: () => [model()] },
  'tmfile.nodesOfMixedTypes': { run: tmfileEntry.nodesOfMixedTypes, args: () => [model()] },
  'tmfile.quantizeConstant': {
    run: tmfileEntry.quantizeConstant,
    args: () => [model(), 'conv/w', 'int8', { perChannel: false, scales: [1], zeroPoints: [0] }],
  },
  'tmfile.removeNode': { run: tmfileEntry.removeNode, args: () => [model(), 'conv'] },
  'tmfile.removeUnused': { run: tmfileEntry.removeUnused, args: () => [model()] },
  'tmfile.rename': { run: tmfileEntry.rename, args: () => [model(), 'conv', 'x'] },
  'tmfile.replaceAllUses': { run: tmfileEntry.replaceAllUses, args: () => [model(), 'conv', 'data'] },
  'tmfile.replaceConstant': {
    run: tmfileEntry.replaceConstant,
    args: () => [model(), 'conv/w', small(), null],
  },
  'tmfile.replaceNode': {
    run: tmfileEntry.replaceNode,
    args: () => [model(), 'conv', reluOf(model())],
  },
  'tmfile.setBatch': { run: tmfileEntry.setBatch, args: () => [model(), 2] },
  'tmfile.setInputShape': {
    run: tmfileEntry.setInputShape,
    args: () => [model(), 'data', [1, 3, 8, 8]],
  },
  'tmfile.setOutputs': { run: tmfileEntry.setOutputs, args: () => [model(), ['conv']] },
  'tmfile.stripNames': { run: tmfileEntry.stripNames, args: () => [model()] },
  'tmfile.stripWeights': { run: tmfileEntry.stripWeights, args: () => [model()] },
}

function openOptions() {
  const choices = {
    mode: 'read',
    guard: false,
    symlinks: 'follow',
    hardLinks: 'allow',
    message: 'model',
  } as const
  return { format: 'btf', level: 'strict', resolve: () => undefined, limits: { tensors: 5 }, ...choices }
}

const drawOptions = () => ({
  dtype: 'int8',
  lower: [0, 0, 0, 0],
  upper: [0, 0, 0, 0],
  color: true,
  width: 80,
})

function parameters(value: object): object {
  return 'tolerance' in value ? value : { scale: [1], zeroPoint: [0] }
}

function stripped() {
  const made = model()
  tmfileEntry.stripWeights(made)
  return made
}

const reluOf = (made: ReturnType<typeof model>) =>
  tmfileEntry.createNode(made, { operator: 'ReLu', name: 'r', inputs: ['conv'] })

/** What getters of options throw; it comes out as the cause of a TileworkError. */
const THROWN = new Error('thrown by a getter')

function withThrowingGetter(given: object, name: string): object {
  return Object.defineProperty({ ...given }, name, {
    enumerable: true,
    get: () => {
      throw THROWN
    },
  })
}

/** Reads the elements of the tensor that a call returned. */
async function use(result: unknown): Promise<void> {
  const made = (await result) as tilework.Tensor | undefined
  if (made?.kind === 'dense') {
    await made.bytes()
    await made.toTypedArray()
  } else if (made?.kind === 'sparse') await made.toDense({ maxBytes: 1000 })
  else if (made?.kind === 'string') await made.rawStrings()
}

/** Description of an error that is not a TileworkError; undefined otherwise. */
async function fault(call: () => unknown): Promise<string | undefined> {
  try {
    await use(call())
    return undefined
  } catch (error) {
    if (error instanceof TileworkError) return undefined
    return error instanceof Error ? (error.stack ?? error.message) : `threw ${typeof error}`
  }
}

/** The arguments with one of them, or one of its fields where it is an object of options, replaced. */
function* wrongArguments({ args }: Call): Generator<readonly [string, readonly unknown[]]> {
  const count = args().length
  for (let at = 0; at < count; at++) {
    for (const [value, make] of WRONG_VALUES.entries()) {
      yield [`argument ${at}, value ${value}`, args().with(at, make())]
    }
    const given = args()[at]
    if (typeof given !== 'object' || given === null || Object.getPrototypeOf(given) !== Object.prototype)
      continue
    for (const name of Object.keys(given)) {
      yield [`argument ${at}, ${name} throws`, args().with(at, withThrowingGetter(given, name))]
      for (const [value, make] of WRONG_VALUES.entries()) {
        const wrong = { ...given, [name]: make() }
        yield [`argument ${at}, ${name}, value ${value}`, args().with(at, wrong)]
      }
    }
  }
  for (let length = 0; length < count; length++) yield [`${length} arguments`, args().slice(0, length)]
}

it('the table covers every exported function', () => {
  const isClass = (value: unknown) => /^class\b/.test(Function.prototype.toString.call(value))
  const functionsOf = (entry: object) =>
    Object.entries(entry).flatMap(([name, value]) =>
      typeof value === 'function' && !isClass(value) ? [name] : [],
    )
  // Functions of tmfile have the names of those of ONNX that do the same.
  const named = functionsOf(tmfileEntry).map((name) =>
    name in CALLS && !(name in onnxEntry) ? name : `tmfile.${name}`,
  )
  const others = functionsOf({
    ...tilework,
    ...remote,
    ...layoutEntry,
    ...onnxEntry,
    ...queueEntry,
  })
  expect([...others, ...named].filter((name) => !(name in CALLS))).toEqual([])
})

it.each(Object.keys(CALLS))('%s', async (name) => {
  const call = CALLS[name]!
  expect(await fault(() => call.run(...call.args())), 'good arguments').toBe(undefined)
  const faults: string[] = []
  for (const [what, args] of wrongArguments(call)) {
    const found = await fault(() => call.run(...args))
    if (found !== undefined) faults.push(`${what}: ${found}`)
  }
  expect(faults).toEqual([])
})

it.each(['btf', 'npy', 'npz', 'onnx', 'safetensors'] as const)(
  'the tensor list of %s returns undefined for every index that is not an integer',
  async (format) => {
    const { tensors } = await open(await serialize(small(), { format }))
    const values = WRONG_VALUES.map((make) => make())
    for (const value of values.filter((value) => !Number.isInteger(value))) {
      expect(tensors.at(value as number)).toBe(undefined)
    }
    expect(tensors.at(-1)!.shape).toEqual(small().shape)
  },
)

it.each(['save', 'save external data', 'save no external data'])(
  '%s writes nothing when an option getter throws',
  async (name) => {
    const { run, args } = CALLS[name]!
    const [, content, options] = args() as [unknown, unknown, object]
    const folder = inFolder(`nothing of ${name}`)
    mkdirSync(folder)
    for (const option of Object.keys(options)) {
      const target = join(folder, 'target.onnx')
      const call = async () => run(target, content, withThrowingGetter(options, option))
      await expect(call()).rejects.toThrow('thrown by a getter')
      expect(readdirSync(folder)).toEqual([])
    }
  },
)
