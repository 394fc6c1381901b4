/** printModel: the syntax of onnx.printer. `test/programs/onnx_text.mjs` compares whole models with the reference. */
import { describe, expect, it } from 'vitest'
import { floatText } from '../../../../lib/formats/onnx/text/float_text.js'
import { open, save, serialize, stringTensor, type Tensor, tensor } from '../../../../lib/index.js'
import { addFunction, Graph, type NewNode, OnnxModel, printModel } from '../../../../lib/onnx.js'
import { runCli, runJson } from '../../../cli/run_cli.js'
import { temporaryFolder } from '../../../cli/temporary_folder.js'
import { addModel } from '../small_model.js'

describe('numbers', () => {
  it.each([
    [1, '1'],
    [-0, '-0'],
    [0.1, '0.1'],
    [1 / 3, '0.33333334'],
    [100000, '1e+05'],
    [120000, '120000'],
    [1234500000, '1234499968'],
    [0.001, '0.001'],
    [0.0001, '1e-04'],
    [0.0012, '0.0012'],
    [343126.125, '343126.12'],
    [2097152.25, '2097152.2'],
    [2097153.75, '2097153.8'],
    [999999936, '999999936'],
    [0.00012345678, '0.00012345678'],
    [0.25, '0.25'],
    [1.5e10, '1.5e+10'],
    [123456792, '123456792'],
    [2 ** -149, '1e-45'],
    [2 ** 127, '1.7014118e+38'],
    [2 ** 96, '7.9228163e+28'],
    [Number.POSITIVE_INFINITY, 'inf'],
    [Number.NEGATIVE_INFINITY, '-inf'],
    [Number.NaN, 'nan'],
  ])('%f', (value, text) => expect(floatText(Math.fround(value), true)).toBe(text))

  it('have the fewest digits that give the same float32', () => {
    const bits = new Uint32Array(1)
    const float = new Float32Array(bits.buffer)
    for (let at = 0; at < 20_000; at++) {
      // Exponents from 2^-20 to 2^39.
      bits[0] = (Math.imul(at, 2654435761) >>> 9) | ((107 + (at % 60)) << 23)
      const value = float[0]!
      const text = floatText(value, true)
      expect(Math.fround(Number(text))).toBe(value)
      const digits = text
        .replace(/e.*/, '')
        .replace(/^0\.0*|\./g, '')
        .replace(/^0+|0+$/g, '').length
      if (value < 1e6 && digits > 1)
        expect(Math.fround(Number(value.toPrecision(digits - 1)))).not.toBe(value)
    }
  })

  it.each([
    [1 / 3, '0.3333333333333333'],
    [123456789012345680000, '123456789012345683968'],
    [1e22, '1e+22'],
    [5e-324, '5e-324'],
  ])('float64 %f', (value, text) => expect(floatText(value, false)).toBe(text))
})

/** What is between the braces of the only initializer. */
async function printedValues(values: Tensor): Promise<string> {
  const model = OnnxModel.create({ opset: 21 })
  model.graph.setInitializer('w', values)
  return /\{([^}]*)\}>/.exec(await printModel(model))![1]!
}

describe('values of tensors, which are written as bytes', () => {
  it('are the texts of their floats, over several parts and of every exponent', async () => {
    const bits = new Uint32Array(6000).map((_, at) => Math.imul(at, 2654435761) ^ (at << 23))
    const random = [...new Float32Array(bits.buffer)].filter(Number.isFinite)
    // Short digits before and behind the point, and near 10^9, where digits are those of the number.
    const short = random.map((_, at) => (at - 3000) * 10 ** ((at % 25) - 12))
    const values = Float32Array.of(...[0, -0, 1e8, 1e9, 999999936, 1234567, 0.5, 1e-4], ...short, ...random)
    expect(await printedValues(tensor(values, { shape: [values.length] }))).toBe(
      [...values].map((value) => floatText(value, true)).join(','),
    )
    const doubles = Float64Array.from(values, (value, at) => value * (1 + at * 2 ** -40))
    expect(await printedValues(tensor(doubles, { shape: [doubles.length] }))).toBe(
      [...doubles].map((value) => floatText(value, false)).join(','),
    )
  })

  it('keep the sign of NaN', async () => {
    const bits = Uint32Array.of(0x7fc00000, 0xffc00000)
    expect(await printedValues(tensor(new Float32Array(bits.buffer), { shape: [2] }))).toBe('nan,-nan')
    const wide = BigUint64Array.of(0x7ff8000000000000n, 0xfff8000000000000n)
    expect(await printedValues(tensor(new Float64Array(wide.buffer), { shape: [2] }))).toBe('nan,-nan')
  })

  const powers = [...Array(64).keys()].flatMap((power) => [2n ** BigInt(power), 10n ** BigInt(power % 19)])
  const around = powers.flatMap((power) => [power - 1n, power, power + 1n])
  const signed = [...around, ...around.map((value) => -value)]
  it.each([
    ['int64', BigInt64Array.from(signed.filter((value) => BigInt.asIntN(64, value) === value))],
    ['uint64', BigUint64Array.from(around.filter((value) => BigInt.asUintN(64, value) === value))],
    ['int32', Int32Array.from(signed, Number)],
    ['uint32', Uint32Array.from(around, Number)],
    ['int16', Int16Array.from(signed, Number)],
    ['uint16', Uint16Array.from(around, Number)],
    ['int8', Int8Array.from(signed, Number)],
    ['uint8', Uint8Array.from(around, Number)],
  ])('are those of %s', async (_, values) =>
    expect(await printedValues(tensor(values, { shape: [values.length] }))).toBe([...values].join(',')),
  )
})

function nested(): OnnxModel {
  const model = OnnxModel.create({ opset: 21, graphName: 'a graph' })
  model.docString = 'say "it"'
  model.setMetadata('k', 'a\\b')
  const { graph } = model
  graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: ['N', null, 3, '2*N'] })
  graph.addInput('s', { kind: 'sequence', of: { kind: 'tensor', dtype: 'int64', shape: [] } })
  graph.addInput('m', { kind: 'map', key: 'string', value: { kind: 'tensor', dtype: 'float64' } })
  graph.addInput('o', { kind: 'optional', of: { kind: 'sparse', dtype: 'float16', shape: [2] } })
  graph.setInitializer('w', tensor(Float32Array.of(1.5, Number.NaN), { shape: [2] }))
  graph.setInitializer('half', tensor([1, -1], { dtype: 'float16', shape: [2] }))
  graph.setInitializer('nibbles', tensor([1, 2], { dtype: 'int4', shape: [2] }))
  graph.setInitializer('words', stringTensor(['a', 'b"']))
  const inner = Graph.create('then')
  inner.addNode({ opType: 'Neg', inputs: ['x'], outputs: ['y.1'] })
  inner.addOutput('y.1', { kind: 'none' })
  const attributes: NewNode['attributes'] = {
    alpha: { type: 'FLOAT', value: 0.1 },
    body: { type: 'GRAPH', value: inner },
    more: { type: 'GRAPHS', value: [inner] },
  }
  graph.addNode({
    opType: 'Own',
    domain: 'own',
    name: 'n 1',
    inputs: ['x', '', 'w'],
    outputs: ['y'],
    attributes,
  })
  graph.addNode({
    opType: 'Constant',
    outputs: ['c'],
    attributes: {
      ints: { type: 'INTS', value: [1, -2] },
      names: { type: 'STRINGS', value: ['a', 'b'] },
      none: { type: 'STRINGS', value: [] },
      t: { type: 'TENSOR', value: tensor(BigInt64Array.of(3n), { shape: [1] }) },
      types: { type: 'TYPE_PROTO', value: { kind: 'opaque', domain: 'd', name: 'n' } },
    },
  })
  graph.setType('c', { kind: 'tensor', dtype: 'float8_e4m3fn', shape: [2, 3] })
  graph.addOutput('y', { kind: 'tensor', dtype: 'float32' })
  addFunction(model, {
    domain: 'own',
    name: 'Own',
    inputs: ['a'],
    outputs: ['b'],
    attributeNames: ['alpha'],
    nodes: [
      {
        opType: 'Elu',
        inputs: ['a'],
        outputs: ['b'],
        attributes: { alpha: { type: 'FLOAT', refName: 'alpha' } },
      },
    ],
  })
  return model
}

const TEXT = `<
   ir_version: 10,
   opset_import: ["" : 21, "own" : 1],
   doc_string: "say \\"it\\"",
   metadata_props: ["k": "a\\\\b"]
>
"a graph" (float[N,?,3,"2*N"] x, seq(int64) s, map(string, double[]) m, optional(sparse_tensor(float16[2])) o) => (float[] y) 
   <float[2] w =  {1.5,nan}, float16[2] half =  {15360,48128}, int4[2] nibbles = ..., string[2] words = {"a", "b\\""}, float8e4m3fn[2,3] c>
{
   ["n 1"] y = own.Own (x, "", w) <alpha: float = 0.1, body: graph = then () => ( "y.1") {
      "y.1" = Neg (x)
   }, more: graphs = [then () => ( "y.1") {
      "y.1" = Neg (x)
   }]>
   c = Constant <ints: ints = [1, -2], names: strings = ["a", "b"], none: strings = ], t: tensor = int64[1] {3}, types: type_proto = opaque(d,n)> ()
}
<
  domain: "own",
  opset_import: ["" : 21]
>
Own <alpha>(a) => (b)
{
   b = Elu <alpha: float = @alpha> (a)
}`

describe('printModel', () => {
  it('prints a model as onnx.printer does, before and after it was written', async () => {
    const model = nested()
    expect(await printModel(model)).toBe(TEXT)
    using file = await open(await serialize(model))
    expect(await printModel(file.onnx!)).toBe(TEXT)
  })

  it('omits values of long tensors', async () => {
    expect(await printModel(nested(), { maxElements: 1 })).toContain(
      '<float[2] w = ..., float16[2] half = ...,',
    )
  })

  it('refuses wrong options', async () => {
    await expect(printModel(addModel(), { maxElements: -1 })).rejects.toThrow(
      'maxElements of printModel is -1',
    )
    await expect(printModel({} as never)).rejects.toThrow('printModel takes an OnnxModel')
  })
})

describe('inspect --text', () => {
  const inFolder = temporaryFolder()

  it('prints the model', async () => {
    const path = inFolder('m.onnx')
    await save(path, addModel(), { external: { threshold: 0 } })
    using file = await open(path)
    const text = await printModel(file.onnx!)
    expect(text).toContain('float[2] w = ["location": "m.onnx.data", "offset": "0", "length": "8"]')
    expect((await runCli(['inspect', path, '--text'])).stdout).toBe(`${text}\n`)
    expect(await runJson(['inspect', path, '--text', '--json'])).toMatchObject({ text })
    const whole = inFolder('whole.onnx')
    await save(whole, addModel())
    expect((await runCli(['inspect', whole, '--text', '1'])).stdout).toContain('float[2] w = ...')
  })

  it('refuses other formats', async () => {
    const path = inFolder('t.npy')
    await save(path, [tensor(Float32Array.of(1))])
    const { code, stderr } = await runCli(['inspect', path, '--text'])
    expect([code, stderr]).toEqual([64, expect.stringContaining('is npy; --text prints ONNX models')])
  })
})
