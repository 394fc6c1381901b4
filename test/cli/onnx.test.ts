/** ONNX on the command line: conversions there and back, and data with a second name. */
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type DenseTensor, open, save, tensor } from '../../lib/index.js'
import { OnnxModel } from '../../lib/onnx.js'
import {
  field,
  graphProto,
  int,
  join as joinBytes,
  modelProto,
  nodeProto,
  raw,
  tensorProto,
} from '../formats/onnx/onnx_bytes.js'
import { runCli } from './run_cli.js'

const one = (name: string): Uint8Array => tensorProto({ dims: [1], type: 2, name, values: raw(1) })

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-cli-onnx-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

it('converts an initializer to npy and back to a bare tensor', async () => {
  const [model, npy, bare] = ['m.onnx', 'w.npy', 'w.pb'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(
    model,
    modelProto({ initializers: [tensorProto({ dims: [3], type: 2, name: 'w', values: raw(1, 2, 3) })] }),
  )
  expect((await runCli(['convert', model, npy])).code).toBe(0)
  expect((await runCli(['convert', npy, bare])).code).toBe(0)
  using file = await open(bare, { level: 'strict' })
  expect([...(await file.dense(0).toTypedArray())]).toEqual([1, 2, 3])
  expect([...readFileSync(bare).subarray(0, 4)]).toEqual([8, 3, 16, 2])
})

it('refuses external data with a second name, and names the flag that allows it', async () => {
  mkdirSync(join(folder, 'model'))
  writeFileSync(join(folder, 'data'), Uint8Array.of(1, 2))
  linkSync(join(folder, 'data'), join(folder, 'model', 'w.bin'))
  const model = join(folder, 'model', 'm.onnx')
  const outside = tensorProto({ dims: [2], type: 2, name: 'w', external: { location: 'w.bin' } })
  writeFileSync(model, modelProto({ initializers: [outside] }))
  const { code, stderr } = await runCli(['inspect', model])
  expect(code).not.toBe(0)
  expect(stderr).toContain('; --hard-links allow allows it.')
  expect((await runCli(['inspect', model, '--hard-links', 'allow'])).code).toBe(0)
})

it('moves values to data files and back', async () => {
  const [model, out, back] = ['m.onnx', 'out.onnx', 'back.onnx'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const values = joinBytes(int(1, 3), int(2, 2), field(8, 'w'), raw(1, 2, 3))
  writeFileSync(model, modelProto({ initializers: [values] }))
  const options = ['--threshold', '3', '--location', 'w.bin', '--alignment', '16', '--checksum', '--json']
  const { code, stdout } = await runCli(['externalize', model, '-o', out, ...options])
  expect([code, JSON.parse(stdout)]).toMatchObject([
    0,
    { input: model, output: out, dataFiles: [{ name: 'w.bin', byteLength: 3 }] },
  ])
  expect(readFileSync(join(folder, 'w.bin'))).toEqual(Buffer.from([1, 2, 3]))
  expect((await runCli(['internalize', out, '-o', back])).code).toBe(0)
  expect(readFileSync(back)).toEqual(readFileSync(model))
  expect((await runCli(['externalize', model, '-o', out, '--threshold', '-1'])).code).toBe(64)
  expect(
    (await runCli(['externalize', model, '-o', out, '--threshold', '1', '--location', '../w'])).code,
  ).not.toBe(0)
  expect((await runCli(['internalize', join(folder, 'w.bin'), '-o', back])).code).not.toBe(0)
})

it('lists the data files, and only the model where there are none', async () => {
  const [model, out, whole] = ['m.onnx', 'out.onnx', 'whole.onnx'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const bytes = raw(...new Uint8Array(2000))
  const values = ['a', 'b'].map((name) => tensorProto({ dims: [2000], type: 2, name, values: bytes }))
  writeFileSync(model, modelProto({ initializers: values }))
  const { stdout } = await runCli(['externalize', model, '-o', out, '--shard-bytes', '2000'])
  const data = readdirSync(folder).filter((name) => name.includes('.data'))
  expect(data).toHaveLength(2)
  const lines = data.map((name) => `${join(folder, name)}: 1.95 KiB`)
  expect(stdout.split('\n').sort()).toEqual(['', ...lines, `${out}: ${statSync(out).size} B`].sort())
  const again = await runCli(['internalize', out, '-o', whole])
  expect(again.stdout).toMatch(/^\S+whole\.onnx: [\d.]+ KiB\n$/)
})

it('removes the data of a replaced model unless they are kept', async () => {
  const [model, out] = [join(folder, 'm.onnx'), join(folder, 'out.onnx')]
  const values = tensorProto({ dims: [2], type: 2, name: 'w', values: raw(1, 2) })
  writeFileSync(model, modelProto({ initializers: [values] }))
  const externalize = ['externalize', model, '-o', out, '--threshold', '1']
  const dataFiles = (): string[] => readdirSync(folder).filter((name) => name.endsWith('.data'))
  for (const [flags, expected] of [
    [[], ['out.onnx.data']],
    [[], ['out.onnx-1.data']],
    [['--keep-old-data'], ['out.onnx-1.data', 'out.onnx.data']],
  ] as const) {
    expect((await runCli([...externalize, ...flags])).code).toBe(0)
    expect(dataFiles().sort()).toEqual(expected)
  }
})

describe('inspect', () => {
  const shaped = (...dims: Uint8Array[]): Uint8Array =>
    field(1, joinBytes(int(1, 1), field(2, joinBytes(...dims.map((dim) => field(1, dim))))))
  const end = (name: string, type: Uint8Array): Uint8Array => joinBytes(field(1, name), field(2, type))
  const node = (operator: string, ...rest: Uint8Array[]): Uint8Array => joinBytes(field(4, operator), ...rest)
  const inner = field(6, graphProto({ nodes: [node('Relu')], initializers: [one('own')] }))
  const graph = joinBytes(
    graphProto({
      nodes: [
        node('Relu'),
        node('If', field(5, joinBytes(field(1, 'then'), inner, int(20, 5)))),
        node('Gelu', field(7, 'com.microsoft')),
        node('Constant', field(5, joinBytes(field(1, 'value'), field(5, one('')), int(20, 4)))),
      ],
      initializers: [
        one('w'),
        tensorProto({ dims: [2], type: 2, name: 'far', external: { location: 'w.bin' } }),
        tensorProto({ dims: [1], type: 1, name: 'typed', values: field(4, new Uint8Array(4)) }),
      ],
      inputs: ['w'],
    }),
    field(11, end('x', shaped(field(2, 'N'), int(1, 3), new Uint8Array(0)))),
    field(12, end('y', field(4, field(1, shaped())))),
  )

  it('lists operator sets, inputs, outputs, operators of all graphs, and the files of values', async () => {
    const model = join(folder, 'm.onnx')
    writeFileSync(join(folder, 'w.bin'), Uint8Array.of(1, 2))
    writeFileSync(
      model,
      modelProto(graph, field(2, 'me'), field(8, joinBytes(field(1, 'com.microsoft'), int(2, 1)))),
    )
    const { stdout } = await runCli(['inspect', model, '--json'])
    expect(JSON.parse(stdout).onnx).toEqual({
      ...{ irVersion: 8, producer: 'me', producerVersion: '', graph: 'g', nodes: 5, functions: 0 },
      opsetImports: { 'ai.onnx': 17, 'com.microsoft': 1 },
      operators: { Relu: 2, Constant: 1, If: 1, 'com.microsoft.Gelu': 1 },
      inputs: [{ name: 'x', type: 'float32 [N, 3, ?]' }],
      outputs: [{ name: 'y', type: 'sequence of float32 []' }],
      values: [
        { storage: 'raw_data', tensors: 3, byteLength: 3 },
        { storage: 'external', location: 'w.bin', tensors: 1, byteLength: 2 },
        { storage: 'float_data', tensors: 1, byteLength: 4 },
      ],
    })
    const { stdout: text } = await runCli(['inspect', model])
    expect(text.split('\n').slice(1, 8)).toEqual([
      'parameters: 4 in 7 B; float32 1 in 4 B, uint8 3 in 3 B',
      'from me, IR version 8; 5 nodes',
      'opsets: ai.onnx 17, com.microsoft 1',
      'operators: Relu 2, Constant 1, If 1, com.microsoft.Gelu 1',
      'inputs: x float32 [N, 3, ?]',
      'outputs: y sequence of float32 []',
      'values: 3 tensors of 3 B in raw_data; 1 tensor of 2 B in file w.bin; 1 tensor of 4 B in float_data',
    ])
  })

  it('lists the tensors of a model whose nodes cannot be read', async () => {
    const model = join(folder, 'm.onnx')
    writeFileSync(model, modelProto({ nodes: [Uint8Array.of(0x0a, 0x7f)], initializers: [one('w')] }))
    const { code, stdout } = await runCli(['inspect', model, '--json'])
    const { tensors, findings, onnx } = JSON.parse(stdout)
    expect([code, tensors.length, onnx]).toEqual([0, 1, undefined])
    expect(findings.map((finding: { code: string }) => finding.code)).toEqual(['ERR_TRUNCATED'])
  })
})

it('refuses to move missing values', async () => {
  const [model, out] = [join(folder, 'm.onnx'), join(folder, 'out.onnx')]
  const outside = tensorProto({ dims: [2], type: 2, name: 'w', external: { location: 'w.bin' } })
  writeFileSync(model, modelProto({ initializers: [outside] }))
  for (const command of ['internalize', 'externalize']) {
    const { code, stderr } = await runCli([command, model, '-o', out])
    expect([command, code]).not.toEqual([command, 0])
    expect(stderr).toContain('ERR_NO_DATA')
    expect(existsSync(out)).toBe(false)
  }
})

it('never drops the nodes of a model, and extracts tensors by name', async () => {
  const [model, out] = [join(folder, 'm.onnx'), join(folder, 'out.onnx')]
  const nodes = [nodeProto({ inputs: ['w'], outputs: ['y'] })]
  writeFileSync(model, modelProto({ nodes, initializers: [one('w')], outputs: ['y'] }))
  const before = readFileSync(model)
  for (const options of [
    ['--dtype', 'int16'],
    ['--layout', 'row_major'],
  ]) {
    const { code, stderr } = await runCli(['convert', model, model, ...options])
    expect([code, stderr]).toEqual([expect.any(Number), expect.stringContaining('is a model of 1 node,')])
    expect(code).not.toBe(0)
  }
  expect(readFileSync(model)).toEqual(before)
  expect((await runCli(['convert', model, out, '--tensor', 'w', '--dtype', 'f16'])).code).toBe(0)
})

it('moves tensors of attributes, and makes data files in the format safetensors', async () => {
  const model = join(folder, 'm.onnx')
  const onnx = OnnxModel.create({ opset: 21 })
  const values = tensor(Float32Array.of(1, 2, 3, 4))
  onnx.graph.setInitializer('w', values)
  onnx.graph.addNode({
    opType: 'Constant',
    outputs: ['c'],
    attributes: { value: { type: 'TENSOR', value: values } },
  })
  await save(model, onnx)
  const externalize = async (name: string, ...flags: readonly string[]): Promise<unknown> => {
    const args = ['externalize', model, '-o', join(folder, name), '--threshold', '1', '--json', ...flags]
    return (JSON.parse((await runCli(args)).stdout) as { dataFiles: unknown }).dataFiles
  }
  expect(await externalize('w.onnx')).toEqual([{ name: 'w.onnx.data', byteLength: 16 }])
  expect(await externalize('all.onnx', '--attributes', '--alignment', '16')).toEqual([
    { name: 'all.onnx.data', byteLength: 32 },
  ])
  await externalize('named.onnx', '--attributes', '--safetensors')
  using data = await open(join(folder, 'named.safetensors'), { level: 'strict' })
  expect([...data.tensors].map(({ name }) => name)).toEqual(['tensor_0', 'w'])
  using file = await open(join(folder, 'named.onnx'), { level: 'strict' })
  const constant = file.onnx!.graph.producerOf('c')!.attribute('value')!.tensors[0] as DenseTensor
  expect([...(await constant.toTypedArray())]).toEqual([1, 2, 3, 4])
})
