/** Annotations for several devices: configurations of models, stages and shardings of nodes. */
import { describe, expect, it } from 'vitest'
import { check, open, serialize } from '../../../../lib/index.js'
import { addFunction, Graph, type NodeDeviceConfiguration, type OnnxModel } from '../../../../lib/onnx.js'
import { addModel } from '../small_model.js'

const full: NodeDeviceConfiguration = {
  configuration: 'two',
  pipelineStage: 1,
  shardings: [
    {
      value: 'w',
      devices: [0, -1],
      deviceGroups: new Map([[-1, [0, 1]]]),
      dims: [
        {
          axis: -1,
          parts: [
            { extent: 2, shards: 2 },
            { extent: 'N', shards: 1 },
            { extent: null, shards: 3 },
          ],
        },
      ],
    },
    { value: 'y' },
  ],
}

function placed(): OnnxModel {
  const model = addModel()
  model.irVersion = 11
  model.addDeviceConfiguration({ name: 'two', devices: ['cpu:0', 'cpu:1'] })
  model.addDeviceConfiguration({ name: 'many', deviceCount: 64 })
  return model
}

describe('device configurations', () => {
  it('are written and read again', async () => {
    const model = placed()
    model.graph.nodes[0]!.deviceConfigurations = [full, { configuration: 'many' }]
    const bytes = await serialize(model)
    expect(await check(bytes, { level: 'strict' })).toEqual([])
    using file = await open(bytes)
    expect(file.onnx!.deviceConfigurations).toEqual([
      { name: 'two', deviceCount: 2, devices: ['cpu:0', 'cpu:1'] },
      { name: 'many', deviceCount: 64, devices: [] },
    ])
    const [node] = file.onnx!.graph.nodes
    expect(node!.deviceConfigurations).toEqual([full, { configuration: 'many' }])
    node!.deviceConfigurations = node!.deviceConfigurations.slice(1)
    expect(node!.deviceConfigurations).toEqual([{ configuration: 'many' }])
  })

  it('go with what nodes of all graphs and functions are annotated with', () => {
    const model = placed()
    const inside = Graph.create()
    inside.addNode({ opType: 'Neg', inputs: ['x'], outputs: ['n'] })
    const attributes = { body: { type: 'GRAPH', value: inside } } as const
    model.graph.addNode({ opType: 'Body', outputs: ['b'], attributes })
    addFunction(model, {
      domain: 'own',
      name: 'F',
      inputs: ['x'],
      nodes: [{ opType: 'Body', inputs: ['x'], outputs: ['b'], attributes }],
    })
    const [body] = model.functions
    const nodes = [...model.graph.allNodes(), body!.nodes[0]!, ...body!.nodes[0]!.subgraphs[0]!.nodes]
    expect(nodes.length).toBe(5)
    for (const node of nodes)
      node.deviceConfigurations = [{ configuration: 'two' }, { configuration: 'many' }]
    expect(model.removeDeviceConfiguration('two')).toBe(true)
    expect(model.removeDeviceConfiguration('two')).toBe(false)
    expect(model.deviceConfigurations.map(({ name }) => name)).toEqual(['many'])
    for (const node of nodes) expect(node.deviceConfigurations).toEqual([{ configuration: 'many' }])
  })

  it.each([
    [{ name: 'two', devices: ['a'] }, 'The name "two" is empty or that of another device configuration.'],
    [{ name: '', devices: ['a'] }, 'The name "" is empty or that of another device configuration.'],
    [{ name: 'n' }, /has 0 devices and 0 names of devices; it needs one device/],
    [{ name: 'n', deviceCount: 2, devices: ['a'] }, /has 2 devices and 1 names of devices/],
    [{ name: 'n', deviceCount: 2 ** 31 }, /has 2147483648 devices/],
  ])('refuses the configuration %j', (added, text) => {
    const model = placed()
    expect(() => model.addDeviceConfiguration(added)).toThrow(text)
    expect(model.deviceConfigurations.length).toBe(2)
  })

  const sharding = (more: object) => ({ configuration: 'two', shardings: [{ value: 'w', ...more }] })
  it.each<[object, string]>([
    [{ configuration: 'none' }, 'The model has no device configuration "none"; add it to the model first.'],
    [{ configuration: 'two', pipelineStage: -1 }, 'pipelineStage is -1; it must be an integer from 0.'],
    [
      sharding({ value: 'z' }),
      'The sharding is of "z", which is neither an input nor an output of the node.',
    ],
    [sharding({ devices: [2] }), 'A sharding of "w" names the device 2; the configuration has 2.'],
    [
      sharding({ deviceGroups: new Map([[-1, [0.5]]]) }),
      'A sharding of "w" names the device 0.5; the configuration has 2.',
    ],
    [
      sharding({ dims: [{ axis: 0, parts: [{ extent: 2, shards: 0 }] }] }),
      'A dimension is split into 0 shards; it must be an integer from 1.',
    ],
    [
      sharding({ dims: [{ axis: 0.5, parts: [] }] }),
      'The axis of a sharding takes a signed 64-bit integer; 0.5 was given.',
    ],
  ])('refuses the annotation %j', (given, message) => {
    const [node] = placed().graph.nodes
    node!.deviceConfigurations = [full]
    expect(() => Object.assign(node!, { deviceConfigurations: [given] })).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT', message }),
    )
    expect(node!.deviceConfigurations).toEqual([full])
  })
})
