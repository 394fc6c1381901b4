/** `tilework edit` on ONNX models. */
import { existsSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { check, type OpenFile, open, save, tensor } from '../../lib/index.js'
import { Graph, OnnxModel } from '../../lib/onnx.js'
import { addModel } from '../models/onnx/small_model.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const MODEL = inFolder('model.onnx')

interface EditReport {
  readonly byteLength: number
  readonly changes: readonly string[]
}

beforeAll(async () => {
  const model = OnnxModel.create({ opset: 17 })
  const { graph } = model
  const type = { kind: 'tensor', dtype: 'float32', shape: [1, 2] } as const
  graph.addInput('x', type)
  graph.setInitializer('fc.weight', tensor(Float32Array.of(1, 2, 3, 4), { shape: [2, 2] }))
  graph.setInitializer('fc.bias', tensor(Float32Array.of(5, 6), { shape: [2] }))
  graph.setInitializer('same', tensor(Float32Array.of(5, 6), { shape: [2] }))
  graph.setInitializer('target', tensor(BigInt64Array.of(1n, 2n), { shape: [2] }))
  graph.addNode({ opType: 'MatMul', name: 'matmul', inputs: ['x', 'fc.weight'], outputs: ['product'] })
  graph.addNode({ opType: 'Add', name: 'add', inputs: ['product', 'fc.bias'], outputs: ['sum'] })
  graph.addNode({ opType: 'Relu', inputs: ['sum'], outputs: ['active'] })
  graph.addNode({ opType: 'Reshape', name: 'reshape', inputs: ['active', 'target'], outputs: ['y'] })
  graph.addNode({ opType: 'Add', name: 'other', inputs: ['sum', 'same'], outputs: ['z'] })
  for (const name of ['product', 'sum', 'active']) graph.setType(name, type)
  graph.addOutput('y', type)
  graph.addOutput('z', type)
  await save(MODEL, model)
})

async function edited(...args: readonly string[]): Promise<{ changes: readonly string[]; file: OpenFile }> {
  const output = inFolder('edited.onnx')
  const { changes, byteLength } = await runJson<EditReport>(['edit', MODEL, ...args, '-o', output])
  expect(byteLength).toBe(readFileSync(output).length)
  return { changes, file: await open(output) }
}

async function errorsOf(path: string): Promise<unknown[]> {
  return (await check(path, { level: 'strict' })).filter(({ severity }) => severity === 'error')
}

async function numbers(file: OpenFile, name: string): Promise<unknown[]> {
  return [...((await file.dense(name).toTypedArray()) as Float32Array)]
}

describe('edit of an ONNX model', () => {
  it('cuts inside a branch, and counts its nodes', async () => {
    const model = OnnxModel.create({ opset: 17 })
    const { graph } = model
    const type = { kind: 'tensor', dtype: 'float32', shape: [2] } as const
    graph.addInput('x', type)
    graph.addInput('c', { kind: 'tensor', dtype: 'bool', shape: [] })
    const branch = Graph.create('branch')
    branch.addNode({ opType: 'Abs', inputs: ['x'], outputs: ['h'] })
    branch.addNode({ opType: 'Exp', inputs: ['h'], outputs: ['r'] })
    branch.addOutput('r', type)
    const body = { type: 'GRAPH', value: branch } as const
    const attributes = { then_branch: body, else_branch: body }
    graph.addNode({ opType: 'If', inputs: ['c'], outputs: ['y'], attributes })
    graph.addOutput('y', type)
    const [from, to] = [inFolder('if.onnx'), inFolder('cut.onnx')]
    await save(from, model)
    const { changes } = await runJson<EditReport>(['edit', from, '--outputs', 'h', '-o', to])
    expect(changes).toEqual(['outputs are h: 1 of 5 nodes'])
    const cut = (await open(to)).onnx!
    expect(cut.graph.nodes.map(({ opType }) => opType)).toEqual(['Abs'])
    expect(await errorsOf(to)).toEqual([])
  })

  it('runs passes: those that are named, or those that run by default', async () => {
    const { changes, file } = await edited('--optimize', 'deduplicate-initializers,remove-unused')
    expect(changes).toEqual(['deduplicate-initializers: 1 change'])
    expect(file.onnx!.graph.hasInitializer('same')).toBe(false)
    const all = await edited('--optimize')
    expect(all.changes).toContain('deduplicate-initializers: 1 change')
    const once = inFolder('once.onnx')
    await save(once, all.file)
    const again = await runJson<EditReport>(['edit', once, '--optimize', '-o', inFolder('twice.onnx')])
    expect(again.changes).toEqual(['optimize: nothing to do'])
    expect(readFileSync(inFolder('twice.onnx'))).toEqual(readFileSync(once))
    const wrong = await runCli(['edit', MODEL, '--optimize', 'remove-identiy', '-o', inFolder('no.onnx')])
    expect([wrong.code, wrong.stderr]).toEqual([
      64,
      expect.stringContaining('did you mean "remove-identity"'),
    ])
  })

  it('renames values and nodes', async () => {
    const args = ['--rename', 'product=hidden', '--rename', 'add=plus', '--rename', 'x=image']
    const { changes, file } = await edited(...args)
    expect(changes).toEqual([
      'renamed product to hidden in 2 references',
      'renamed add to plus in 1 reference',
      'renamed x to image in 2 references',
    ])
    const { graph } = file.onnx!
    expect([graph.nodes[0]!.outputs, graph.nodes[1]!.inputs[0], graph.nodes[1]!.name]).toEqual([
      ['hidden'],
      'hidden',
      'plus',
    ])
    expect(graph.inputs[0]!.name).toBe('image')
    expect(await errorsOf(inFolder('edited.onnx'))).toEqual([])
  })

  it('cuts to outputs, and from values to others', async () => {
    const outputs = await edited('--outputs', 'sum')
    expect(outputs.changes).toEqual(['outputs are sum: 2 of 5 nodes'])
    expect(outputs.file.onnx!.graph.nodes.map(({ opType }) => opType)).toEqual(['MatMul', 'Add'])
    expect(outputs.file.onnx!.graph.initializerNames).toEqual(['fc.weight', 'fc.bias'])
    const part = await edited('--from', 'product', '--to', 'active')
    expect(part.changes).toEqual(['cut from product to active: 2 of 5 nodes'])
    expect([...part.file.onnx!.graph.inputNames]).toEqual(['product'])
    expect(await errorsOf(inFolder('edited.onnx'))).toEqual([])
  })

  it('names new outputs whose type is not declared', async () => {
    const untyped = inFolder('untyped.onnx')
    const model = await open(MODEL)
    const { graph } = model.onnx!
    graph.message.clear('value_info')
    // Its type cannot be inferred.
    graph.nodes.find(({ outputs }) => outputs.includes('sum'))!.opType = 'Unheard'
    await save(untyped, model)
    const { changes } = await runJson<EditReport>([
      ...['edit', untyped, '--outputs', 'sum', '-o', inFolder('cut.onnx')],
    ])
    expect(changes).toEqual([
      'outputs are sum: 2 of 5 nodes',
      'sum declares no type, which onnx.checker refuses: declare it with --set-type',
    ])
    const typed = [
      'edit',
      untyped,
      '--set-type',
      'sum=f32:1,2',
      '--outputs',
      'sum',
      '-o',
      inFolder('cut.onnx'),
    ]
    expect((await runJson<EditReport>(typed)).changes).not.toContainEqual(
      expect.stringContaining('onnx.checker'),
    )
  })

  it('declares types, before everything else', async () => {
    const typed = inFolder('typed.onnx')
    const args = [
      '--set-type',
      'sum=f32:N,?,2',
      '--set-type',
      'active=int64',
      '--set-type',
      'product=int8:scalar',
    ]
    const { changes, file } = await edited(...args)
    expect(changes).toEqual([
      'type of sum is float32 [N, ?, 2]',
      'type of active is int64 of any rank',
      'type of product is int8 []',
    ])
    const { graph } = file.onnx!
    expect(['sum', 'active', 'product'].map((name) => graph.typeOf(name))).toEqual([
      { kind: 'tensor', dtype: 'float32', shape: ['N', null, 2] },
      { kind: 'tensor', dtype: 'int64' },
      { kind: 'tensor', dtype: 'int8', shape: [] },
    ])
    const untyped = await open(MODEL)
    untyped.onnx!.graph.message.clear('value_info')
    // Nothing follows from an operator that is not known.
    untyped.onnx!.graph.producerOf('sum')!.domain = 'other'
    await save(typed, untyped)
    const cut = ['edit', typed, '--from', 'sum', '--to', 'y', '-o', inFolder('part.onnx')]
    expect(await runCli(cut)).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('"sum" is not declared; --set-type NAME=DTYPE:N,N,… declares it.'),
    })
    expect((await runCli([...cut, '--set-type', 'sum=float32:1,2'])).code).toBe(0)
  })

  it.each([
    [['--set-input', 'x=N,2'], 'N', 'input x is [N, 2]'],
    [['--set-batch', '8'], 8, 'batch is 8'],
    [['--set-batch', 'N'], 'N', 'batch is N'],
    [['--set-batch', 'batch_size'], 'batch_size', 'batch is batch_size'],
  ])('%j changes shapes that follow', async (args, batch, change) => {
    const { changes, file } = await edited(...args)
    expect(changes).toEqual([change, 'Reshape reshape follows the batch'])
    const { graph } = file.onnx!
    const shapes = ['x', 'product', 'active', 'y', 'z'].map((name) => graph.typeOf(name))
    expect(shapes).toEqual(shapes.map(() => ({ kind: 'tensor', dtype: 'float32', shape: [batch, 2] })))
    expect(await errorsOf(inFolder('edited.onnx'))).toEqual([])
  })

  it.each(['-1', '1.5', 'N,M', ''])('refuses --set-batch %j', async (batch) => {
    const { code, stderr } = await runCli(['edit', MODEL, '--set-batch', batch, '-o', inFolder('never.onnx')])
    expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining('--set-batch') })
  })

  it('removes nodes, by their name or the name of an output, and what is unused', async () => {
    const { changes, file } = await edited(
      '--remove-node',
      'active',
      '--remove-node',
      'other',
      '--remove-unused',
    )
    expect(changes).toEqual([
      'removed node active',
      'removed node other',
      '0 unused nodes and 1 unused initializer removed',
    ])
    const { graph } = file.onnx!
    expect(graph.nodes.map(({ opType, inputs }) => [opType, inputs[0]])).toEqual([
      ['MatMul', 'x'],
      ['Add', 'product'],
      ['Reshape', 'sum'],
    ])
    expect([...graph.outputNames]).toEqual(['y', 'sum'])
    expect(await errorsOf(inFolder('edited.onnx'))).toEqual([])
  })

  it('stores int64 as int32 where it can, and says why others stay', async () => {
    const model = addModel()
    const { graph } = model
    for (const name of ['at', 'shape'])
      graph.setInitializer(name, tensor(BigInt64Array.of(1n), { shape: [1] }))
    graph.addNode({ opType: 'Gather', inputs: ['y', 'at'], outputs: ['g'] })
    graph.addNode({ opType: 'Reshape', inputs: ['g', 'shape'], outputs: ['z'] })
    graph.addOutput('z', { kind: 'tensor', dtype: 'float32', shape: [1] })
    const [path, out] = [inFolder('wide.onnx'), inFolder('narrow.onnx')]
    await save(path, model)
    const { code, stdout } = await runCli(['edit', path, '--narrow-ints', '-o', out])
    expect(code).toBe(0)
    expect(stdout).toContain(
      '1 int64 value stored as int32\nint64 stays, because Reshape needs int64: shape\n',
    )
    using file = await open(out)
    expect(['at', 'shape'].map((name) => file.onnx!.graph.initializer(name)!.dtype)).toEqual([
      'int32',
      'int64',
    ])
  })

  it('sets metadata and operator sets, and merges equal initializers', async () => {
    const args = ['--metadata', 'note=a=b', '--opset', '18', '--opset', 'com.example=2', '--merge-constants']
    const { changes, file } = await edited(...args)
    expect(changes).toEqual([
      '1 equal initializer removed',
      'metadata note is a=b',
      'opset 17 converted to 18: 0 nodes rewritten',
      'opset com.example has version 2',
    ])
    expect([...file.onnx!.metadata]).toEqual([['note', 'a=b']])
    expect([...file.onnx!.opsetImports]).toEqual([
      ['', 18],
      ['com.example', 2],
    ])
  })

  it('sets the version alone of a named operator set', async () => {
    const { changes, file } = await edited('--opset', 'ai.onnx=12')
    expect(changes).toEqual(['opset ai.onnx has version 12'])
    expect([...file.onnx!.opsetImports]).toEqual([['', 12]])
    const { code, stderr } = await runCli(['edit', MODEL, '--opset', '12', '-o', inFolder('down.onnx')])
    expect([code, stderr]).toEqual([64, expect.stringContaining('cannot be converted down to 12')])
  })

  it('puts weights back that were taken out and trained', async () => {
    const weights = inFolder('weights.safetensors')
    await runCli(['convert', MODEL, weights, '--tensor', 'fc.bias', '--tensor', 'fc.weight'])
    const same = await edited('--weights', weights)
    expect(same.changes).toEqual([`2 initializers of ${weights}; 2 others unchanged`])
    await save(weights, [tensor(Float32Array.of(7, 8), { name: 'fc.bias' })])
    const { file } = await edited('--weights', weights)
    expect(await numbers(file, 'fc.bias')).toEqual([7, 8])
    expect(await numbers(file, 'fc.weight')).toEqual([1, 2, 3, 4])
    expect(file.onnx!.graph.nodes).toHaveLength(5)
    expect(await errorsOf(inFolder('edited.onnx'))).toEqual([])
  })

  it('refuses weights that do not fit, unless --force', async () => {
    const weights = inFolder('wrong.safetensors')
    const output = inFolder('never.onnx')
    const run = (...more: string[]) => runCli(['edit', MODEL, '--weights', weights, '-o', output, ...more])
    await save(weights, [tensor(Float32Array.of(7, 8, 9), { name: 'fc.bias' })])
    expect(await run()).toMatchObject({
      code: 64,
      stderr: expect.stringContaining(
        'wrong.safetensors#fc.bias is float32 [3] and the constant "fc.bias" is float32 [2]; --force replaces it anyway.',
      ),
    })
    await save(weights, [tensor(Int32Array.of(7, 8), { name: 'fc.bias' })])
    expect((await run()).stderr).toContain('is int32 [2] and the constant "fc.bias" is float32 [2]')
    await save(weights, [
      tensor(Float32Array.of(7, 8), { name: 'fc.bias' }),
      tensor(Float32Array.of(7, 8), { name: 'fc.biases' }),
    ])
    const unknown = await run()
    expect(unknown.stderr).toContain(
      'such as "fc.biases"; did you mean "fc.bias"? --force skips such tensors.',
    )
    expect(existsSync(output)).toBe(false)
    expect(await run('--force')).toMatchObject({ code: 0 })
    await save(weights, [tensor(Float32Array.of(7, 8), { name: 'none' })])
    expect((await run('--force')).code).toBe(64)
  })

  it('replaces one initializer, of the same shape and type unless --force', async () => {
    const [fits, wider] = [inFolder('fits.npy'), inFolder('wider.npy')]
    await save(fits, [tensor(Float32Array.of(7, 8))])
    await save(wider, [tensor(Float64Array.of(7, 8))])
    const { changes, file } = await edited('--replace-constant', `fc.bias=${fits}`)
    expect(changes).toEqual([`constant fc.bias is float32 [2] of ${fits}`])
    expect(await numbers(file, 'fc.bias')).toEqual([7, 8])
    const refused = await runCli([
      'edit',
      MODEL,
      '--replace-constant',
      `fc.bias=${wider}`,
      '-o',
      inFolder('no.onnx'),
    ])
    expect(refused).toMatchObject({ code: 64, stderr: expect.stringContaining('--force') })
    const forced = await edited('--replace-constant', `fc.bias=${wider}`, '--force')
    expect(forced.file.dense('fc.bias').dtype).toBe('float64')
  })

  it('notes a type that the nodes may refuse', async () => {
    const weights = inFolder('wide.npz')
    await save(weights, [tensor(Float64Array.of(7, 8), { name: 'fc.bias' })])
    const note = 'tilework: fc.bias was float32: its consumers may refuse float64.\n'
    for (const option of [
      ['--weights', weights],
      ['--replace-constant', `fc.bias=${weights}`],
    ]) {
      const args = ['edit', MODEL, ...option, '--force', '-o', inFolder('noted.onnx')]
      expect(await runCli(args)).toMatchObject({ code: 0, stderr: note })
    }
    await save(weights, [tensor(Float32Array.of(7), { name: 'fc.bias' })])
    const args = ['edit', MODEL, '--weights', weights, '--force', '-o', inFolder('noted.onnx')]
    expect(await runCli(args)).toMatchObject({ code: 0, stderr: '' })
  })

  it('strips weights and fills them again, but not shapes', async () => {
    const stripped = inFolder('stripped.onnx')
    const { changes } = await runJson<EditReport>(['edit', MODEL, '--strip-weights', '-o', stripped])
    expect(changes).toEqual(['values of 3 initializers removed'])
    const file = await open(stripped)
    expect([...file.tensors].map(({ name, shape, hasData }) => [name, shape, hasData])).toEqual([
      ['fc.weight', [2, 2], false],
      ['fc.bias', [2], false],
      ['same', [2], false],
      ['target', [2], true],
    ])
    file.close()
    const filled = inFolder('filled.onnx')
    const args = ['edit', stripped, '-o', filled, '--fill-weights']
    expect((await runJson<EditReport>([...args, 'zeros'])).changes).toEqual([
      '3 initializers filled from zeros',
    ])
    expect(await numbers(await open(filled), 'fc.weight')).toEqual([0, 0, 0, 0])
    await runCli([...args, MODEL])
    expect(await numbers(await open(filled), 'fc.weight')).toEqual([1, 2, 3, 4])
    expect(await errorsOf(filled)).toEqual([])
  })

  it.each([
    [['--set-input', 'y=1,2'], '"y" is not an input of the graph'],
    [['--set-input', 'x=1,2,3'], 'rank 3; input "x" has rank 2'],
    [['--cast-weights', 'float16'], '--cast-weights edits tmfiles only'],
    [['--strip-names'], '--strip-names edits tmfiles only'],
    [['--write', 'upgrade'], '--write edits tmfiles only'],
    [['--set-type', 'summ=float32'], 'The graph has no value "summ"; did you mean "sum"'],
    [['--set-type', 'sum=flaot32'], 'unknown dtype "flaot32"; did you mean "float32'],
    [['--set-type', 'sum'], '--set-type takes NAME=DTYPE or NAME=DTYPE:N,N,…'],
    [
      ['--set-type', 'sum=float32:-1'],
      'numbers from 0 to 2^53 - 1, names of dimensions or "?", separated by commas',
    ],
    [['--opset', 'x'], '--opset takes VERSION or DOMAIN=VERSION'],
    [['--metadata', 'x'], '--metadata takes KEY=VALUE'],
    [['--rename', 'sun=b'], 'No value or node has the name "sun"; did you mean "sum"?'],
    [['--rename', 'fc.=b'], 'has the name "fc."; did you mean "fc.bias" or "fc.weight"?'],
    [['--remove-node', 'reshap'], 'The graph has no node "reshap"; did you mean "reshape"?'],
    [['--remove-node', 'matmul', '--from', 'x', '--to', 'summ'], 'no value "summ"; did you mean "sum"'],
    [['--replace-constant', `fc.wieght=${MODEL}#fc.bias`], 'did you mean "fc.weight"'],
    [['--replace-constant', `fc.weight=${MODEL}#fc.wieght`], 'did you mean "fc.weight"'],
  ])('%j is refused, and nothing is written', async (args, message) => {
    const output = inFolder('refused.onnx')
    const { code, stderr } = await runCli(['edit', MODEL, ...args, '-o', output])
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)])
    expect(existsSync(output)).toBe(false)
  })

  it('writes the format of its input', async () => {
    const { code, stderr } = await runCli(['edit', MODEL, '--opset', '18', '-o', inFolder('out.npz')])
    expect([code, stderr]).toEqual([64, expect.stringContaining('edit writes the format of its input, onnx')])
  })
})

it('an unknown tensor of convert lists the nearest names', async () => {
  const { code, stderr } = await runCli(['convert', MODEL, inFolder('x.npz'), '--tensor', 'fc.wieght'])
  expect([code, stderr]).toEqual([
    64,
    expect.stringContaining('no tensor "fc.wieght"; did you mean "fc.weight"'),
  ])
})
