/** Models on the command line: their content, edits, and conversions of their weights. */

import { readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { EditReport } from '../../lib/cli/commands/edit.js'
import type { TensorReport } from '../../lib/cli/commands/inspect.js'
import { check, type DenseTensor, lazyTensor, open, save, tensor } from '../../lib/index.js'
import type { TmfileDump, TmfileSummary } from '../../lib/models/tmfile/index.js'
import { addConstant, createNode, insertNode, stripWeights } from '../../lib/tmfile.js'
import { smallFile } from '../formats/tmfile/tmfile_bytes.js'
import { THIRD_PARTY, thirdPartyFiles, thirdPartyPath } from '../shared_fixtures.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

interface InspectJson {
  readonly format: string
  readonly model: TmfileSummary
  readonly graph: TmfileDump
  readonly tensors: readonly TensorReport[]
}

const inFolder = temporaryFolder()
const small = inFolder('small.tmfile')
beforeAll(async () => writeFileSync(small, await smallFile()))

describe('inspect', () => {
  it('summarizes the graph, and digests only the weights', async () => {
    const { format, model, tensors } = await runJson<InspectJson>(['inspect', small, '--digest'])
    expect(format).toBe('tmfile')
    expect(model).toEqual({
      ...{ name: null, sourceFormat: 'unknown', graphLayout: 'NCHW', modelLayout: 'NCHW' },
      ...{ nodes: 4, tensors: 4, buffers: 2, devices: null, fusedActivations: {} },
      operators: { Const: 2, Convolution: 1, InputOp: 1 },
      inputs: [{ name: 'data', dtype: 'float32', shape: [1, 3, 4, 4] }],
      outputs: [{ name: 'conv', dtype: 'float32', shape: [1, 2, 4, 4] }],
      constants: { count: 2, byteLength: 32, withoutData: 0 },
      quantization: { perTensor: 0, perChannel: 0, unknown: 0, none: 4 },
    })
    expect(tensors.map(({ hasData, sha256 }) => [hasData, sha256?.length])).toEqual([
      [false, undefined],
      [true, 64],
      [true, 64],
      [false, undefined],
    ])
  })

  it('names activations among what it counts', async () => {
    const { stdout } = await runCli(['inspect', small])
    expect(stdout).toContain('weights and activations: ')
    expect(stdout).not.toContain('elements: ')
  })

  it('prints the nodes as text, constants where they are read', THIRD_PARTY, async () => {
    const path = thirdPartyPath('tmfile/mobilenet_benchmark.tmfile')
    const { stdout } = await runCli(['inspect', path, '--text'])
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(28 + 1 + 1)
    expect(lines[0]).toMatch(/^#\d+ \S+: InputOp\(\) -> \S+ float32 \[1,3,224,224\]$/)
    expect(lines[1]).toMatch(/: Convolution\(\S+, \S+ float32 \[32,3,3,3\], .*\) -> .*, kernel_h=3, /)
  })

  it('shows activations fused into convolutions', THIRD_PARTY, async () => {
    const path = thirdPartyPath('tmfile/mobilenet_benchmark.tmfile')
    const { model } = await runJson<InspectJson>(['inspect', path])
    expect(model.operators).toEqual({ Const: 56, Convolution: 28, InputOp: 1, Pooling: 1 })
    const fused = Object.values(model.fusedActivations).reduce((sum, count) => sum + count, 0)
    expect(fused).toBeGreaterThan(20)
    const { stdout } = await runCli(['inspect', path])
    expect(stdout).toContain('operators: Const 56, Convolution 28')
    expect(stdout).toContain('fused into convolutions: ')
    expect(stdout).toContain('56 without data')
  })
})

/** Names of fields in the tables of docs/tmfile.md, by the heading or sentence before each. */
function documentedFields(): Record<string, string[]> {
  const page = readFileSync(new URL('../../docs/tmfile.md', import.meta.url), 'utf8')
  const tables: Record<string, string[]> = {}
  let title = ''
  for (const line of page.split('\n')) {
    const heading = /^(?:## |A )(\w+):?$/.exec(line)?.[1]
    if (heading) title = heading
    const names = /^\| (`.*?`) \|/.exec(line)?.[1]
    if (names) tables[title] = [...(tables[title] ?? []), ...names.replaceAll('`', '').split(', ')]
  }
  return tables
}

describe('the graph in JSON', () => {
  it('has the documented fields', async () => {
    const { model, graph } = await runJson<InspectJson>(['inspect', small, '--json'])
    const fields = documentedFields()
    expect(fields.model!.toSorted()).toEqual(Object.keys(model).toSorted())
    expect(fields.graph!.toSorted()).toEqual(Object.keys(graph).toSorted())
    expect(fields.node!.toSorted()).toEqual(Object.keys(graph.nodes[0]!).toSorted())
    expect(fields.tensor!.toSorted()).toEqual(Object.keys(graph.tensors[0]!).toSorted())
  })

  it('has nodes, parameters and links', async () => {
    const { graph } = await runJson<InspectJson>(['inspect', small, '--json'])
    expect(graph.nodes[3]).toMatchObject({
      ...{ name: 'conv', operator: 'Convolution', operatorNumber: 5, inputs: [0, 1, 2], outputs: [3] },
      params: { kernel_h: 1, output_channel: 2, activation: -1 },
    })
    expect(graph.tensors[1]).toMatchObject({ role: 'constant', buffer: 0, producer: 1, consumers: [3] })
    expect(graph.buffers.map(({ byteLength }) => byteLength)).toEqual([24, 8])
    expect([graph.inputs, graph.outputs, graph.devices]).toEqual([[0], [3], null])
  })

  it.each(thirdPartyFiles('tmfile').map(({ path }) => [path]))(
    'of %s holds together',
    THIRD_PARTY,
    async (name) => {
      const { model, graph, tensors } = await runJson<InspectJson>([
        'inspect',
        thirdPartyPath(name),
        '--json',
      ])
      expect([graph.nodes.length, graph.tensors.length, graph.buffers.length]).toEqual([
        model.nodes,
        model.tensors,
        model.buffers,
      ])
      expect(graph.tensors.map(({ dtype }) => dtype)).toEqual(tensors.map(({ dtype }) => dtype))
      const file = readFileSync(thirdPartyPath(name))
      for (const { buffer, dtype, shape } of graph.tensors) {
        if (buffer === null || dtype !== 'float32') continue
        const { offset, byteLength } = graph.buffers[buffer]!
        expect(byteLength).toBe(4 * shape!.reduce((product, extent) => product * extent, 1))
        if (offset !== null) expect(offset + byteLength).toBeLessThanOrEqual(file.length)
      }
      for (const [at, { inputs, outputs }] of graph.nodes.entries()) {
        for (const tensor of inputs) expect(graph.tensors[tensor]!.consumers).toContain(at)
        for (const tensor of outputs) expect(graph.tensors[tensor]!.producer).toBe(at)
      }
    },
  )
})

describe('edit', () => {
  it('makes changes in a fixed order and describes them', async () => {
    const out = inFolder('edited.tmfile')
    const args = ['--rename', 'conv=scores', '--set-input', 'data=2,3,4,4', '--strip-weights', '-o', out]
    const report = await runJson<EditReport>(['edit', small, ...args])
    expect(report.changes).toEqual([
      'input data is [2, 3, 4, 4]',
      'renamed conv to scores in 2 references',
      'values of all constants removed',
    ])
    const file = await open(out)
    expect(file.byteLength).toBe(report.byteLength)
    expect(file.tmfile!.graph.tensors.map(({ name, shape }) => [name, shape?.[0]])).toEqual([
      ['data', 2],
      ['conv/w', 2],
      ['conv/b', 2],
      ['scores', 2],
    ])
    expect(await check(out, { level: 'strict' })).toEqual([])
  })

  it('may overwrite its input, and prints the changes as text', async () => {
    const own = inFolder('own.tmfile')
    writeFileSync(own, await smallFile())
    const { code, stdout } = await runCli(['edit', own, '--set-batch', '3', '--merge-constants', '-o', own])
    expect([code, stdout]).toEqual([0, expect.stringContaining('batch is 3\n')])
    expect((await open(own)).tmfile!.graph.tensors[0]!.shape).toEqual([3, 3, 4, 4])
  })

  it('cuts a part out of a real model, and upgrades old structs', THIRD_PARTY, async () => {
    const out = inFolder('part.tmfile')
    const source = await open(thirdPartyPath('tmfile/retinaface_benchmark.tmfile'))
    const nodes = source.tmfile!.graph.nodes.filter(({ operator }) => operator === 'Convolution')
    const [from, to] = [nodes[0]!.outputs[0]!.name!, nodes[2]!.outputs[0]!.name!]
    const args = ['--from', from, '--to', to, '--write', 'upgrade', '-o', out]
    const report = await runJson<EditReport>([
      'edit',
      thirdPartyPath('tmfile/retinaface_benchmark.tmfile'),
      ...args,
    ])
    expect(report.changes[0]).toMatch(/^cut from /)
    const { tmfile: model, findings } = await open(out, { level: 'strict' })
    expect(findings).toEqual([])
    expect(model!.graph.outputs[0]!.outputs[0]!.name).toBe(to)
  })

  const edited = async (args: readonly string[], name = 'small.tmfile') => {
    const out = inFolder(`edited-${name}`)
    const report = await runJson<EditReport>(['edit', inFolder(name), ...args, '-o', out])
    const errors = (await check(out, { level: 'strict' })).filter(({ severity }) => severity === 'error')
    // A note of the command names nodes of mixed types.
    const isMixed = report.notes.some((note) => note.includes('assumes one dtype for the model'))
    expect(errors.filter(({ code }) => !isMixed || code !== 'ERR_DTYPE')).toEqual([])
    expect(errors.some(({ code }) => code === 'ERR_DTYPE')).toBe(isMixed)
    return { report, file: await open(out) }
  }
  const namesOf = (list: readonly { readonly name: string | null }[]) => list.map(({ name }) => name)

  it('inserts a node between a tensor and its consumers, with new constants', async () => {
    const description = inFolder('scale.json')
    const gamma = { values: [2, 3] }
    const node = { operator: 'Scale', name: 'scaled', inputs: ['conv', 'gamma'], params: { axis: 1 } }
    writeFileSync(description, JSON.stringify({ ...node, constants: { gamma }, replaces: 'conv' }))
    const relu = {
      operator: 'ReLu',
      name: 'relu',
      inputs: ['scaled'],
      outputs: ['result'],
      replaces: 'scaled',
    }
    const { report, file } = await edited([
      ...['--insert-node', `@${description}`],
      ...['--insert-node', JSON.stringify(relu)],
    ])
    expect(report.changes).toEqual([
      'inserted node scaled (Scale), which replaces conv as input of other nodes',
      'inserted node relu (ReLu), which replaces scaled as input of other nodes',
    ])
    const { nodes, outputs } = file.tmfile!.graph
    expect(namesOf(nodes)).toEqual(['gamma', 'data', 'conv/w', 'conv/b', 'conv', 'scaled', 'relu'])
    expect(nodes[5]!.params).toEqual({ axis: 1, num_axes: 0, bias_term: 0 })
    expect(namesOf(outputs)).toEqual(['relu'])
    expect([...(await file.dense('gamma').toTypedArray())]).toEqual([2, 3])
  })

  it('replaces a node and keeps its name, inputs and outputs', async () => {
    const pooling = { operator: 'Pooling', inputs: ['data'], params: { alg: 1, global: 1 } }
    const { file } = await edited(['--replace-node', `conv=${JSON.stringify(pooling)}`])
    const { nodes, buffers } = file.tmfile!.graph
    expect(nodes.map(({ name, operator }) => [name, operator])).toEqual([
      ['data', 'InputOp'],
      ['conv', 'Pooling'],
    ])
    expect(buffers).toEqual([])
  })

  it('takes constants from files of other formats, by name, alone, and with scales', async () => {
    const weights = tensor([6, 5, 4, 3, 2, 1], { dtype: 'float32', shape: [2, 3, 1, 1], name: 'conv/w' })
    const bias = tensor([9, 10], { dtype: 'float32', name: 'other' })
    await save(inFolder('both.safetensors'), [weights, bias])
    await save(inFolder('alone.npy'), [bias])
    for (const where of ['both.safetensors#other', 'alone.npy', 'alone.npy##0']) {
      const args = ['--replace-constant', `conv/w=${inFolder('both.safetensors')}`]
      const { file } = await edited([...args, '--replace-constant', `conv/b=${inFolder(where)}`])
      expect([...(await file.dense('conv/w').toTypedArray())]).toEqual([6, 5, 4, 3, 2, 1])
      expect([...(await file.dense('conv/b').toTypedArray())]).toEqual([9, 10])
    }
    const codes = inFolder('codes.tmfile')
    await runCli(['edit', small, '--quantize', 'conv/w=int8', '-o', codes])
    const { file } = await edited(['--replace-constant', `conv/w=${codes}`, '--force'])
    expect(file.dense('conv/w').quantization).toEqual((await open(codes)).dense('conv/w').quantization)
  })

  it('takes element types by their short names, too', async () => {
    const half = await edited(['--cast-weights', 'f16'])
    expect(half.report.changes).toEqual(['2 constants cast to float16'])
    expect(half.file.dense('conv/w').dtype).toBe('float16')
    const codes = await edited(['--quantize', 'conv/w=i8'])
    expect(codes.report.changes).toEqual(['constant conv/w is int8 with 2 scales'])
    for (const [name, reason] of [
      ['int8', '--cast-weights takes float32 or float16; it is "int8".'],
      ['flaot16', 'did you mean "float16"'],
    ]) {
      const { code, stderr } = await runCli([
        'edit',
        small,
        '--cast-weights',
        name!,
        '-o',
        inFolder('no.tmfile'),
      ])
      expect([code, stderr]).toEqual([64, expect.stringContaining(reason!)])
    }
  })

  it('refuses constants of another shape or type, unless --force', async () => {
    const wrong = inFolder('wrong.npy')
    await save(wrong, [tensor([1, 2, 3], { dtype: 'float32' })])
    const args = ['edit', small, '--replace-constant', `conv/b=${wrong}`, '-o', inFolder('refused.tmfile')]
    const { code, stderr } = await runCli(args)
    expect([code, stderr]).toEqual([
      64,
      expect.stringContaining('is float32 [3] and the constant "conv/b" is float32 [2]'),
    ])
    await save(wrong, [tensor([1, 2], { dtype: 'float16' })])
    expect(await runCli(args)).toMatchObject({ code: 64, stderr: expect.stringContaining('--force') })
    const forced = await edited(['--replace-constant', `conv/b=${wrong}`, '--force'])
    expect(forced.file.dense('conv/b').dtype).toBe('float16')
  })

  it('computes the shapes behind an input, and names those that are unknown', async () => {
    const prior = '{"operator":"PriorBox","name":"prior","inputs":["conv","data"],"outputs":["boxes"]}'
    const out = inFolder('shapes.tmfile')
    const args = ['edit', small, '--insert-node', prior, '--set-input', 'data=1,3,8,6', '-o', out]
    const { stdout } = await runCli(args)
    expect(stdout).toContain('the shape of 1 tensor is unknown until the runtime infers it: boxes\n')
    const { unknown } = await runJson<{ unknown: string[] }>(args)
    expect(unknown).toEqual(['boxes'])
    const shapes = new Map((await open(out)).tmfile!.graph.tensors.map(({ name, shape }) => [name, shape]))
    expect([shapes.get('conv'), shapes.get('boxes')]).toEqual([[1, 2, 8, 6], null])
  })

  it('puts weights back by name, codes with their scales', async () => {
    const weights = inFolder('back.safetensors')
    await save(weights, [tensor([9, 10], { dtype: 'float32', name: 'conv/b' })])
    const { file, report } = await edited(['--weights', weights])
    expect(report.changes).toEqual([`1 constant of ${weights}; 1 other unchanged`])
    expect([...(await file.dense('conv/b').toTypedArray())]).toEqual([9, 10])
    const quantized = await edited(['--quantize', 'conv/w=int8'])
    await runCli(['convert', inFolder('edited-small.tmfile'), weights])
    const again = await edited(['--weights', weights], 'edited-small.tmfile')
    expect(again.file.dense('conv/w').quantization).toEqual(quantized.file.dense('conv/w').quantization)
    await save(weights, [tensor([9, 10], { dtype: 'float32', name: 'conv/c' })])
    const refused = await runCli(['edit', small, '--weights', weights, '-o', inFolder('refused.tmfile')])
    expect([refused.code, refused.stderr]).toEqual([
      64,
      expect.stringContaining('such as "conv/c"; did you mean '),
    ])
  })

  it.each([
    [['--rename', 'cnv=b'], 'No tensor or node has the name "cnv"; did you mean "conv"?'],
    [['--remove-node', 'cnv'], 'no node "cnv"; did you mean "conv"?'],
    [['--outputs', 'conv/x'], 'no tensor "conv/x"; did you mean "conv/w", "conv/b" or "conv"?'],
    [['--insert-node', '{"operator":"Relu6x","name":"r"}'], 'did you mean "ReLu6"'],
    [['--set-input', 'pixels=1,3,4,4'], 'The graph has no tensor "pixels"; inputs: "data".'],
    [['--set-input', 'conv=1'], 'Tensor "conv" is not an input of the graph; inputs: "data".'],
    [['--metadata', 'a=b'], '--metadata edits ONNX models only: a tmfile has no metadata'],
    [['--opset', '3'], '--opset edits ONNX models only: a tmfile has no opsets'],
    [['--optimize'], '--optimize edits ONNX models only: its passes are for ONNX operators'],
    [['--set-type', 'conv=float32'], '--set-type edits ONNX models only'],
  ])('%j is refused with advice', async (args, advice) => {
    const { code, stderr } = await runCli(['edit', small, ...args, '-o', inFolder('refused.tmfile')])
    expect([code, stderr]).toEqual([64, expect.stringContaining(advice)])
  })

  it('quantizes and dequantizes constants', async () => {
    const scales = JSON.stringify({ dtype: 'int32', scales: [0.5] })
    const quantized = await edited(['--quantize', 'conv/w=int8', '--quantize', `conv/b=${scales}`])
    expect(quantized.report.changes).toEqual([
      'constant conv/w is int8 with 2 scales',
      'constant conv/b is int32 with 1 scale',
    ])
    const { tensors } = await runJson<InspectJson>(['inspect', inFolder('edited-small.tmfile')])
    expect(tensors[1]).toMatchObject({ dtype: 'int8', quantization: { zeroPoint: [0, 0], axis: 0 } })
    expect(tensors[2]).toMatchObject({ dtype: 'int32', quantization: { scale: 0.5, zeroPoint: 0 } })
    const back = await edited(['--dequantize', 'conv/b'], 'edited-small.tmfile')
    expect([...(await back.file.dense('conv/b').toTypedArray())]).toEqual([7, 8])
    expect(back.file.dense('conv/b').quantization).toBeUndefined()
  })

  it('fills missing weights with zeros, or from another file', async () => {
    const stripped = inFolder('stripped.tmfile')
    await runCli(['edit', small, '--strip-weights', '-o', stripped])
    const zeros = await edited(['--fill-weights', 'zeros'], 'stripped.tmfile')
    expect([...(await zeros.file.dense('conv/b').toTypedArray())]).toEqual([0, 0])
    await runCli(['convert', small, inFolder('weights.onnx')])
    const filled = await edited(['--fill-weights', inFolder('weights.onnx')], 'stripped.tmfile')
    expect([...(await filled.file.dense('conv/b').toTypedArray())]).toEqual([7, 8])
    expect(filled.report.changes).toEqual([`2 constants filled from ${inFolder('weights.onnx')}`])
  })

  it('allocates no zeros before their size is known to fit into a file', async () => {
    const model = (await open(small)).tmfile!
    for (let at = 0; at < 30; at++) {
      const options = { dtype: 'float32', shape: [1 << 28] } as const
      addConstant(
        model,
        `large${at}`,
        lazyTensor(() => Promise.reject(new Error('never read')), options),
      )
    }
    stripWeights(model)
    await save(inFolder('claims.tmfile'), model)
    const { code, stderr } = await runCli([
      'edit',
      inFolder('claims.tmfile'),
      '--fill-weights',
      'zeros',
      '-o',
      inFolder('zeros.tmfile'),
    ])
    expect(stderr).toMatch(/^tilework: ERR_OVERFLOW|ERR_LIMIT|ERR_TOO_LARGE/)
    expect(code).not.toBe(70)
  })

  it('leaves constants that describe shapes without values', async () => {
    const model = (await open(small)).tmfile!
    const [, , bias, conv] = model.graph.tensors
    const words = tensor([0, -1], { dtype: 'int32' }) as DenseTensor
    const target = addConstant(model, 'target', words)
    const description = { operator: 'Reshape', name: 'flat', inputs: [conv!, target] } as const
    insertNode(model, createNode(model, { ...description, params: { re_shape: [0, -1] } }))
    Object.assign(bias!, { dtype: 'int32' })
    stripWeights(model)
    await save(inFolder('shapes.tmfile'), model)
    const { file, report } = await edited(['--fill-weights', 'zeros'], 'shapes.tmfile')
    expect(report.changes).toEqual([
      '2 constants filled from zeros',
      'constant target describes a shape and was not filled',
    ])
    expect(file.dense('target').hasData).toBe(false)
    expect([...(await file.dense('conv/b').toTypedArray())]).toEqual([0, 0])
  })

  it.each([
    [['--insert-node', '{"operator":"ReLu","name":"r","inputs":["nobody"]}'], 64],
    [['--insert-node', '{"operator":"Relu","name":"r"}'], 64],
    [['--insert-node', '{"operator":"ReLu","name":"r","params":{"slope":1}}'], 64],
    [['--insert-node', '{"operator":"ReLu","name":"r","after":"conv"}'], 64],
    [['--insert-node', '{"operator":"ReLu"}'], 64],
    [['--insert-node', '{"operator":"ReLu","name":"r","constants":{"c":{"values":[1],"file":"x"}}}'], 64],
    [['--insert-node', '[]'], 64],
    [['--insert-node', '{'], 64],
    [['--insert-node', '@nowhere.json'], 74],
    [['--insert-node', '@/dev/zero'], 64],
    [['--insert-node', '{"operator":"ReLu","name":"conv","outputs":["conv"]}'], 64],
    [['--replace-node', 'conv'], 64],
    [['--replace-node', 'nobody={"operator":"ReLu"}'], 64],
    [['--replace-constant', 'conv/w'], 64],
    [['--replace-constant', 'conv/w=nowhere.npy'], 74],
    [['--quantize', 'conv/w'], 64],
    [['--quantize', 'conv/w=int4'], 64],
    [['--quantize', 'conv/w={"dtype":"int8","rules":"onnx"}'], 64],
    [['--dequantize', 'conv/w'], 64],
    [['--set-input', 'data=1,3,4'], 64],
    [['--rename', 'conv='], 64],
    [['--rename', 'conv=data'], 64],
    [['--insert-node', '{"operator":"ReLu","name":"conv","inputs":["conv"],"outputs":["r"]}'], 64],
    [['--outputs', 'nobody'], 64],
    [['--set-input', 'conv=1'], 64],
    [['--fill-weights', 'nowhere.npz', '--strip-weights'], 74],
    [['--rename', 'a'], 64],
    [['--rename', 'a=b=c'], 64],
    [['--set-batch', '0'], 64],
    [['--set-input', 'data'], 64],
    [['--from', 'data'], 64],
    [['--set-input', 'nobody=1'], 64],
    [['--rename', 'nobody=b'], 64],
  ])('%j is refused, and nothing is written', async (args, code) => {
    const out = inFolder('refused.tmfile')
    const result = await runCli(['edit', small, ...args, '-o', out])
    expect(result.code).toBe(code)
    await expect(open(out)).rejects.toMatchObject({ code: 'ERR_IO' })
  })

  it.each([
    [['--insert-node', '{"operator":"ReLu","name":"r","constant":{}}'], 'did you mean "constants"?'],
    [
      ['--replace-node', 'conv={"operator":"ReLu","replaces":"conv"}'],
      'unknown field "replaces" in the node of --replace-node; expected one of: operator,',
    ],
    [
      ['--replace-node', 'conv={"operator":"ReLu","constants":{"c":{"value":[1]}}}'],
      'in constant c; expected one of: file, values, dtype, shape.',
    ],
    [
      ['--quantize', 'conv/w={"dtype":"int8","rules":"onnx"}'],
      'in --quantize conv/w; expected one of: dtype, perChannel, scales, zeroPoints.',
    ],
  ])('%j names the known fields', async (args, advice) => {
    const { code, stderr } = await runCli(['edit', small, ...args, '-o', inFolder('refused.tmfile')])
    expect([code, stderr]).toEqual([64, expect.stringContaining(advice)])
  })

  it('a file without a graph cannot be edited', async () => {
    const path = inFolder('weights.npz')
    expect((await runCli(['convert', small, path])).code).toBe(0)
    expect((await runCli(['edit', path, '-o', inFolder('no.tmfile')])).code).toBe(64)
  })
})

describe('convert', () => {
  it('casts the weights of a model, which stays a model', async () => {
    const [half, back] = [inFolder('half.tmfile'), inFolder('back.tmfile')]
    expect(await runCli(['convert', small, half, '--dtype', 'float16'])).toMatchObject({ code: 0 })
    const { tmfile: model } = await open(half, { level: 'strict' })
    expect(new Set(model!.graph.tensors.map(({ dtype }) => dtype))).toEqual(new Set(['float16']))
    expect(model!.graph.nodes.map(({ operator }) => operator)).toContain('Convolution')
    expect(await runCli(['convert', half, back, '--dtype', 'f32'])).toMatchObject({ code: 0 })
    expect(Buffer.compare(readFileSync(back), readFileSync(small))).toBe(0)
    expect((await runCli(['convert', small, half, '--dtype', 'int8'])).code).toBe(64)
  })

  it.each(['tmfile/mnist.tmfile', 'tmfile/FaceLandmark2d.tmfile', 'tmfile/from_onnx_UINT8.tmfile'])(
    'takes the weights of %s to formats with names, bit for bit',
    THIRD_PARTY,
    async (name) => {
      const { tensors } = await open(thirdPartyPath(name))
      const constants = ([...tensors] as DenseTensor[]).filter(({ hasData }) => hasData)
      for (const format of ['npz', 'safetensors', 'onnx']) {
        const out = inFolder(`${basename(name)}.${format}`)
        expect(await runCli(['convert', thirdPartyPath(name), out, '--weights-only'])).toMatchObject({
          code: 0,
        })
        const file = await open(out)
        expect(file.tensors.length).toBe(constants.length)
        for (const constant of constants) {
          const stored = file.dense(constant.name)
          expect([stored.dtype, stored.shape]).toEqual([constant.dtype, constant.shape])
          expect(Buffer.compare(await stored.bytes(), await constant.bytes())).toBe(0)
        }
      }
    },
  )

  it('extracts one weight in a blocked layout, and prints the undo', async () => {
    const [blocked, plain] = [inFolder('blocked.npy'), inFolder('plain.npy')]
    const selection = ['--tensor', 'conv/w']
    const args = [
      'convert',
      small,
      blocked,
      ...selection,
      '--layout',
      'os_is_yx_isv16_osv16',
      '--as',
      'weights',
    ]
    const { code, stdout } = await runCli(args)
    expect([code, stdout]).toEqual([0, expect.stringContaining('--from-layout os_is_yx_isv16_osv16')])
    const back = ['--from-layout', 'os_is_yx_isv16_osv16', '--shape', '2,3,1,1']
    expect(await runCli(['convert', blocked, plain, ...back])).toMatchObject({ code: 0 })
    expect([...(await (await open(plain)).dense(0).toTypedArray())]).toEqual([1, 2, 3, 4, 5, 6])
  })

  it.each(['npz', 'safetensors', 'btf', 'onnx'])('takes the weights of a model to %s', async (format) => {
    const out = inFolder(`weights.${format}`)
    expect(await runCli(['convert', small, out])).toMatchObject({ code: 0 })
    const { tensors } = await open(out)
    // safetensors sorts by name.
    const shapes = [...tensors].map(({ shape }) => shape).sort((one, other) => other.length - one.length)
    expect(shapes).toEqual([[2, 3, 1, 1], [2]])
  })

  it('stores loose tensors as the constants of a model', async () => {
    const [npz, back] = [inFolder('loose.npz'), inFolder('loose.tmfile')]
    await runCli(['convert', small, npz])
    expect(await runCli(['convert', npz, back])).toMatchObject({ code: 0 })
    const file = await open(back)
    expect([...(await file.dense('conv/b').toTypedArray())]).toEqual([7, 8])
  })
})
