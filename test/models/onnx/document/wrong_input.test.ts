/** Invalid values from untyped programs: each throws a TileworkError or is ignored, and changes nothing. */

import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { open, save, serialize, TileworkError, tensor } from '../../../../lib/index.js'
import {
  addFunction,
  decodeTensorProto,
  encodeTensorProto,
  Graph,
  initializersToConstants,
  type OnnxModel,
  OnnxModel as OnnxModels,
} from '../../../../lib/onnx.js'

const circular: { kind: string; of?: unknown } = { kind: 'sequence' }
circular.of = circular

const WRONG: readonly unknown[] = [
  ...[undefined, null, 5, -1, 1.5, Number.NaN, 2 ** 60, 10n ** 30n, true, 'x', '\ud800', '', Symbol('s')],
  ...[{}, [], [5], [null], ['\ud800'], () => 1, new Uint8Array(2), circular, new Proxy({}, { get: fail })],
]

function fail(): never {
  throw new RangeError('a trap')
}

/** A path in a missing folder, so nothing is written. */
const NOWHERE = join(tmpdir(), 'tilework-no-such-folder', 'm.onnx')

/** Every call that takes a value from the caller, by its name in a failure. */
const CALLS: Readonly<Record<string, (model: OnnxModel, wrong: never) => unknown>> = {
  irVersion: (model, wrong) => Object.assign(model, { irVersion: wrong }),
  producerName: (model, wrong) => Object.assign(model, { producerName: wrong }),
  docString: (model, wrong) => Object.assign(model, { docString: wrong }),
  'setMetadata key': (model, wrong) => model.setMetadata(wrong, 'v'),
  'setMetadata value': (model, wrong) => model.setMetadata('k', wrong),
  'setOpsetImport domain': (model, wrong) => model.setOpsetImport(wrong, 1),
  'setOpsetImport version': (model, wrong) => model.setOpsetImport('d', wrong),
  'graph name': ({ graph }, wrong) => Object.assign(graph, { name: wrong }),
  'addInput name': ({ graph }, wrong) => graph.addInput(wrong, { kind: 'none' }),
  'addInput type': ({ graph }, wrong) => graph.addInput('q', wrong),
  'addOutput name': ({ graph }, wrong) => graph.addOutput(wrong, { kind: 'none' }),
  'addOutput type': ({ graph }, wrong) => graph.addOutput('y', wrong),
  'setType type': ({ graph }, wrong) => graph.setType('y', wrong),
  'setType of an input': ({ graph }, wrong) => graph.setType('x', wrong),
  'setType dtype': ({ graph }, wrong) => graph.setType('x', { kind: 'tensor', dtype: wrong }),
  'setType shape': ({ graph }, wrong) => graph.setType('x', { kind: 'tensor', dtype: 'int8', shape: wrong }),
  uniqueName: ({ graph }, wrong) => graph.uniqueName(wrong),
  initializer: ({ graph }, wrong) => graph.initializer(wrong),
  'setInitializer name': ({ graph }, wrong) => graph.setInitializer(wrong, tensor([1], { dtype: 'int8' })),
  'setInitializer tensor': ({ graph }, wrong) => graph.setInitializer('w', wrong),
  removeInitializer: ({ graph }, wrong) => graph.removeInitializer(wrong),
  usersOf: ({ graph }, wrong) => graph.usersOf(wrong),
  addNode: ({ graph }, wrong) => graph.addNode(wrong),
  'addNode at': ({ graph }, wrong) => graph.addNode({ opType: 'A', outputs: ['q'] }, wrong),
  insertBefore: ({ graph }, wrong) => graph.insertBefore(wrong, { opType: 'A', outputs: ['q'] }),
  insertAfter: ({ graph }, wrong) => graph.insertAfter(graph.nodes[0]!, wrong),
  addDeviceConfiguration: (model, wrong) => model.addDeviceConfiguration(wrong),
  'addDeviceConfiguration devices': (model, wrong) =>
    model.addDeviceConfiguration({ name: 'd', devices: wrong }),
  removeDeviceConfiguration: (model, wrong) => model.removeDeviceConfiguration(wrong),
  deviceConfigurations: ({ graph }, wrong) => Object.assign(graph.nodes[0]!, { deviceConfigurations: wrong }),
  'deviceConfigurations sharding': ({ graph }, wrong) =>
    Object.assign(graph.nodes[0]!, { deviceConfigurations: [{ configuration: 'd', shardings: [wrong] }] }),
  removeNode: ({ graph }, wrong) => graph.removeNode(wrong),
  'replaceAllUses name': ({ graph }, wrong) => graph.replaceAllUses(wrong, 'y'),
  'replaceAllUses other': ({ graph }, wrong) => graph.replaceAllUses('x', wrong),
  'rename name': ({ graph }, wrong) => graph.rename(wrong, 'q'),
  'rename other': ({ graph }, wrong) => graph.rename('x', wrong),
  initializersToConstants: (model, wrong) => initializersToConstants(model, wrong),
  'setMetadata of a node': ({ graph }, wrong) => graph.nodes[0]!.setMetadata('k', wrong),
  'setAttribute name': ({ graph }, wrong) => graph.nodes[0]!.setAttribute(wrong, { type: 'INT', value: 1 }),
  setAttribute: ({ graph }, wrong) => graph.nodes[0]!.setAttribute('a', wrong),
  attribute: ({ graph }, wrong) => graph.nodes[0]!.attribute(wrong),
  removeAttribute: ({ graph }, wrong) => graph.nodes[0]!.removeAttribute(wrong),
  ...Object.fromEntries(
    ['opType', 'domain', 'name', 'inputs', 'outputs', 'attributes'].map((key) => [
      `addNode ${key}`,
      ({ graph }: OnnxModel, wrong: never) => graph.addNode({ opType: 'A', [key]: wrong }),
    ]),
  ),
  ...Object.fromEntries(
    ['opType', 'domain', 'name', 'inputs', 'outputs'].map((key) => [
      `node ${key}`,
      ({ graph }: OnnxModel, wrong: never) => Object.assign(graph.nodes[0]!, { [key]: wrong }),
    ]),
  ),
  ...Object.fromEntries(
    [
      ...['FLOAT', 'INT', 'STRING', 'TENSOR', 'FLOATS', 'INTS', 'STRINGS', 'TENSORS', 'SPARSE_TENSOR'],
      ...['SPARSE_TENSORS', 'GRAPH', 'GRAPHS', 'TYPE_PROTO', 'TYPE_PROTOS'],
    ].map((type) => [
      `attribute ${type}`,
      ({ graph }: OnnxModel, value: never) => graph.nodes[0]!.setAttribute('a', { type, value } as never),
    ]),
  ),
  create: (_, wrong) => OnnxModels.create(wrong),
  'create irVersion': (_, wrong) => OnnxModels.create({ irVersion: wrong }),
  'create opset': (_, wrong) => OnnxModels.create({ opset: wrong }),
  'create graphName': (_, wrong) => OnnxModels.create({ graphName: wrong }),
  'Graph.create': (_, wrong) => Graph.create(wrong),
  decodeTensorProto: (_, wrong) => decodeTensorProto(wrong),
  encodeTensorProto: (_, wrong) => encodeTensorProto(wrong),
  'encodeTensorProto options': (_, wrong) => encodeTensorProto(tensor([1], { dtype: 'int8' }), wrong),
  ...Object.fromEntries(
    ['domain', 'name', 'overload', 'inputs', 'outputs', 'attributeNames', 'opsetImports', 'nodes'].map(
      (key) => [
        `addFunction ${key}`,
        (model: OnnxModel, wrong: never) =>
          addFunction(model, { domain: 'own', name: 'F', nodes: [], [key]: wrong }),
      ],
    ),
  ),
  addFunction: (model, wrong) => addFunction(model, wrong),
  ...Object.fromEntries(
    ([{ threshold: 1 }, false] as const).flatMap((external) => {
      const kind = external ? 'save external data' : 'save no external data'
      const options = { format: 'onnx', external } as const
      return [
        [kind, (_: OnnxModel, wrong: never) => save(NOWHERE, wrong, options)],
        [`${kind} of a list`, (_: OnnxModel, wrong: never) => save(NOWHERE, [wrong], options)],
        [`${kind} target`, (model: OnnxModel, wrong: never) => save([wrong] as never, model, options)],
        [
          `${kind} signal`,
          (model: OnnxModel, wrong: never) => save(NOWHERE, model, { ...options, signal: wrong }),
        ],
        [
          `${kind} onProgress`,
          (model: OnnxModel, wrong: never) => save(NOWHERE, model, { ...options, onProgress: wrong }),
        ],
      ]
    }),
  ),
  'save options': (model, wrong) => save(NOWHERE, model, wrong),
  'serialize external': (model, wrong) => serialize(model as never, { format: 'onnx', external: wrong }),
}

async function smallModel(): Promise<Uint8Array> {
  const model = OnnxModels.create()
  const { graph } = model
  graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: ['N', 2] })
  graph.addNode({ opType: 'Relu', inputs: ['x'], outputs: ['y'] })
  graph.setInitializer('w', tensor([1, 2], { dtype: 'float32' }))
  return serialize(model)
}

it.each(Object.entries(CALLS))('%s', async (_, call) => {
  const bytes = await smallModel()
  for (const wrong of WRONG) {
    using file = await open(bytes)
    try {
      await call(file.onnx!, wrong as never)
    } catch (error) {
      expect(error).toBeInstanceOf(TileworkError)
      expect(await serialize(file)).toEqual(bytes)
    }
    // An accepted value can be written and read again.
    using saved = await open(await serialize(file))
    void saved
  }
})
