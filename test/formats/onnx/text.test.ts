/** ONNX text, and the text and JSON forms of protobuf: models read and written, and text that is refused. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { check, open, save, serialize, stringTensor, tensor } from '../../../lib/index.js'
import { addFunction, Graph, OnnxModel, type OnnxWriteOptions, printModel } from '../../../lib/onnx.js'

const folder = mkdtempSync(join(tmpdir(), 'tilework-onnx-text-'))
const KINDS = ['onnxtxt', 'textproto', 'json'] as const
const EXTENSION = { onnxtxt: '.onnxtxt', textproto: '.textproto', json: '.onnxjson' } as const
type Kind = (typeof KINDS)[number]

const text = async (model: OnnxModel, encoding: OnnxWriteOptions['encoding'] & string): Promise<string> =>
  Buffer.from(await serialize(model, { encoding })).toString()
const opened = async (source: string): Promise<OnnxModel> => (await open(Buffer.from(source))).onnx!

/** A model with all that ONNX text has a form for. */
function full(): OnnxModel {
  const model = OnnxModel.create({ opset: 21, irVersion: 11 })
  const { graph } = model
  model.producerName = 'a "quoted" name\\'
  model.docString = 'two\nlines # no comment'
  model.setMetadata('key', 'wért')
  graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: ['N', 2, null] })
  graph.addInput('c', { kind: 'tensor', dtype: 'bool', shape: [] })
  graph.addInput('s', { kind: 'sequence', of: { kind: 'tensor', dtype: 'int64' } })
  graph.addInput('m', {
    kind: 'map',
    key: 'string',
    value: { kind: 'optional', of: { kind: 'tensor', dtype: 'float16', shape: [3] } },
  })
  graph.setInitializer(
    'w',
    tensor(Float32Array.of(0.1, -0, Number.NaN, Number.NEGATIVE_INFINITY, 3e-45, 16777216), {
      shape: [2, 3],
    }),
  )
  graph.setInitializer('a b', tensor(BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n), { shape: [2] }))
  graph.setInitializer('u', tensor(BigUint64Array.of(2n ** 64n - 1n), { shape: [1] }))
  graph.setInitializer('t', stringTensor(['a"\\', '', 'é\n'], { shape: [3] }))
  graph.setInitializer('d', tensor(Float64Array.of(1 / 3, 5e-324), { shape: [2] }))
  const branch = Graph.create('a branch')
  branch.addNode({ opType: 'Neg', inputs: ['x'], outputs: ['n'] })
  branch.addOutput('n', { kind: 'none' })
  const graphs = {
    then_branch: { type: 'GRAPH', value: branch },
    else_branch: { type: 'GRAPH', value: branch },
  } as const
  graph.addNode({ opType: 'If', name: 'choice', inputs: ['c'], outputs: ['y'], attributes: graphs })
  graph.addNode({
    opType: 'Own',
    domain: 'my.domain',
    inputs: ['', 'y', '', 'a b'],
    outputs: ['z', '', 'q'],
    attributes: {
      f: { type: 'FLOAT', value: 2 },
      i: { type: 'INT', value: -7 },
      s: { type: 'STRING', value: 'text "' },
      fs: { type: 'FLOATS', value: [1, 0.5, Number.POSITIVE_INFINITY] },
      is: { type: 'INTS', value: [] },
      ss: { type: 'STRINGS', value: ['a', 'b'] },
      none: { type: 'STRINGS', value: [] },
      t: { type: 'TENSOR', value: tensor(Int8Array.of(-1, 2), { shape: [2] }) },
      ts: {
        type: 'TENSORS',
        value: [tensor(Int32Array.of(5), { shape: [1] }), tensor(Uint8Array.of(6), { shape: [1] })],
      },
      gs: { type: 'GRAPHS', value: [branch] },
      tp: { type: 'TYPE_PROTO', value: { kind: 'tensor', dtype: 'float32', shape: ['M'] } },
      tps: { type: 'TYPE_PROTOS', value: [{ kind: 'sparse', dtype: 'float64', shape: [1] }] },
    },
  })
  model.setOpsetImport('my.domain', 3)
  graph.addOutput('z', { kind: 'tensor', dtype: 'bfloat16' })
  addFunction(model, {
    domain: 'own',
    name: 'Scale',
    overload: 'more',
    inputs: ['p'],
    outputs: ['r'],
    attributeNames: ['alpha'],
    nodes: [
      {
        opType: 'LeakyRelu',
        inputs: ['p'],
        outputs: ['r'],
        attributes: { alpha: { type: 'FLOAT', refName: 'alpha' } },
      },
    ],
  })
  return model
}

describe('models as text', () => {
  it.each(KINDS)('are read and written as %s', async (kind) => {
    const model = full()
    const expected = await printModel(model)
    const path = join(folder, `full${EXTENSION[kind]}`)
    await save(path, model)
    using file = await open(path)
    expect(file.format).toBe('onnx')
    expect(file.byteLength).toBe(readFileSync(path).byteLength)
    expect(await printModel(file.onnx!)).toBe(expected)
    const binary = join(folder, 'full.onnx')
    await save(binary, file)
    using again = await open(binary)
    expect(await printModel(again.onnx!)).toBe(expected)
    if (kind !== 'onnxtxt')
      expect(Buffer.from(await serialize(again.onnx!)).equals(await serialize(model))).toBe(true)
    // Without a name and without a path, they are what their content says.
    using unnamed = await open(readFileSync(path))
    expect(await printModel(unnamed.onnx!)).toBe(expected)
    const other = kind === 'json' ? 'textproto' : 'json'
    await save(join(folder, `other${EXTENSION[other]}`), unnamed)
    using converted = await open(join(folder, `other${EXTENSION[other]}`))
    expect(await printModel(converted.onnx!)).toBe(expected)
  })

  it('are written from bytes without a name by the extension of the path', async () => {
    using file = await open(await serialize(full()))
    const path = join(folder, 'named.onnxtxt')
    await save(path, file)
    expect(readFileSync(path, 'utf8')).toBe(`${await printModel(file.onnx!)}\n`)
  })

  it('keep values that are in other files', async () => {
    const model = full()
    const path = join(folder, 'external.onnxtxt')
    await save(path, model, { external: { threshold: 0, location: 'external.data' } })
    expect(readFileSync(path, 'utf8')).toContain('["location": "external.data"')
    using file = await open(path)
    expect(file.tensors.get('w')).toMatchObject({ shape: [2, 3], hasData: true })
    // The data of a model that is replaced go, unless another names them: this one does so in text.
    await save(join(folder, 'external.onnx'), file)
    await save(join(folder, 'external.onnx'), model)
    using still = await open(path)
    expect(await printModel(still.onnx!)).toBe(await printModel(file.onnx!))
  })

  it('hold single tensors where the message is named', async () => {
    const bytes = await serialize([tensor(Float32Array.of(1, 2), { name: 'w', shape: [2] })], {
      format: 'onnx',
      message: 'TensorProto',
      encoding: 'textproto',
    })
    expect(Buffer.from(bytes).toString()).toBe(
      'dims: 2\ndata_type: 1\nname: "w"\nraw_data: "\\000\\000\\200?\\000\\000\\000@"\n',
    )
    const path = join(folder, 'tensor.textproto')
    writeFileSync(path, bytes)
    using file = await open(path, { message: 'TensorProto' })
    expect([...file.tensors].map(({ name, shape }) => [name, shape])).toEqual([['w', [2]]])
  })

  it('refuses an encoding that is unknown, and tensors as ONNX text', async () => {
    await expect(serialize(full(), { encoding: 'xml' as never })).rejects.toThrow(
      'unknown encoding "xml"; expected one of: protobuf, onnxtxt, textproto, json.',
    )
    const single = { format: 'onnx', message: 'TensorProto', encoding: 'onnxtxt' } as const
    await expect(serialize(tensor([1], { dtype: 'int8' }), single)).rejects.toThrow('no TensorProto')
  })

  it.each<[string, (model: OnnxModel) => void]>([
    [
      'TensorProto',
      (model) => model.graph.setInitializer('four', tensor([1, 2], { dtype: 'int4', shape: [2] })),
    ],
    ['training_info', (model) => void model.message.insert('training_info')],
    ['attribute_proto', (model) => model.functions[0]!.setAttribute('k', { type: 'INT', value: 1 })],
  ])('refuses ONNX text for what it has no form for: %s', async (_, add) => {
    const model = full()
    add(model)
    const refused = expect.objectContaining({ code: 'ERR_UNSUPPORTED' })
    await expect(text(model, 'onnxtxt')).rejects.toThrow(refused)
    for (const kind of ['textproto', 'json'] as const)
      expect(
        Buffer.from(await serialize(await opened(await text(model, kind)))).equals(await serialize(model)),
      ).toBe(true)
  })
})

const GRAPH = 'g (float[2] x) => (float[2] y) { y = Relu (x) }'
const HEADER = '<ir_version: 9, opset_import: ["": 21]>'

describe('ONNX text', () => {
  it('reads what onnx.parser reads beside what its printer writes', async () => {
    const model = await opened(`# a comment
      <ir_version: 9, opset_import: ["": 21, "own": 1]> # another
      "a graph" (float[2] x = {1, 2.5}, y) => (float[N] z)
      <int64[2] k = {1, -2}, float v> {
        [n] z, = own.sub.Op:more <a = 1, b: floats = [1, 2], c = nan, d = -inf, e = float[1] {1}, f = seq(float[?])> (, x, "w w", )
        = Last ()
      }
      <domain: "own", opset_import: ["": 21]> F <p, q: int = 3> (float i) => (o) <float m> { o = Neg <k: int = @p> (i) }`)
    const [node, last] = model.graph.nodes
    expect(model.graph.initializerNames).toEqual(['x', 'k'])
    expect([...model.graph.inputNames]).toEqual(['x', 'y'])
    expect(model.graph.valueInfo.map(({ name }) => name)).toEqual(['v'])
    expect([node!.name, node!.domain, node!.opType, node!.overload]).toEqual(['n', 'own.sub', 'Op', 'more'])
    expect([node!.inputs, node!.outputs, last!.outputs, last!.inputs]).toEqual([
      ['', 'x', 'w w'],
      ['z'],
      [],
      [],
    ])
    const values = node!.attributes.map(({ type, value }) => [
      type,
      Array.isArray(value) ? value : typeof value,
    ])
    expect(values).toEqual([
      ['INT', 'number'],
      ['FLOATS', [1, 2]],
      ['FLOAT', 'number'],
      ['FLOAT', 'number'],
      ['TENSOR', 'object'],
      ['TYPE_PROTO', 'object'],
    ])
    const [body] = model.functions
    expect([body!.attributeNames, body!.attributes[0]!.value, [...body!.valueTypes.keys()]]).toEqual([
      ['p'],
      3,
      ['i', 'm'],
    ])
    expect(body!.nodes[0]!.attribute('k')!.refName).toBe('p')
  })

  it('rounds each number once', async () => {
    const halves = [
      '0.1',
      '16777217',
      '1.0000000596046447753906251',
      '1.000000059604644775390624',
      '1.17549429e-38',
      '3.5e38',
      '-7.1e-46',
    ]
    const model = await opened(`${HEADER} g (float[${halves.length}] x = {${halves}}) => (float y) {}`)
    const values = await (model.graph.initializer('x') as { bytes(): Promise<Uint8Array> }).bytes()
    expect([...new Float32Array(values.slice().buffer)]).toEqual([
      Math.fround(0.1),
      16777216,
      1 + 2 ** -23,
      1,
      Math.fround(1.17549429e-38),
      Number.POSITIVE_INFINITY,
      -1.401298464324817e-45,
    ])
  })

  it.each<[string, string, string?]>([
    [`${HEADER} g (float[2] x) =`, 'Line 1, column 56: "=>" was expected; "=" was found.'],
    [`${HEADER}\n${GRAPH} trailing (`, 'Line 2, column 59: the name of a value was expected; the text ends.'],
    ['<ir_version: 9, ir_version: 9>', 'Line 1, column 17: the field "ir_version" is given twice.'],
    [
      '<ir_version: 9, graph: 9>',
      'Line 1, column 17: unknown field "graph"; expected one of: ir_version, opset_import, producer_name, producer_version, domain, model_version, doc_string, metadata_props.',
    ],
    [
      '<ir_version: 99999999999999999999>',
      'Line 1, column 14: 99999999999999999999 is not from -9223372036854775808 to 9223372036854775807.',
      'ERR_OVERFLOW',
    ],
    [
      `<ir_version: ${'9'.repeat(1025)}>`,
      'Line 1, column 14: a numeral has 1025 characters; the limit is 1024.',
      'ERR_LIMIT',
    ],
    ['<ir_version: 9, domain: "open', 'Line 1, column 25: the quoted text has no end.'],
    [
      `${HEADER} g (int8[1] x = {2147483648}) => () {}`,
      'Line 1, column 57: 2147483648 is not from -2147483648 to 2147483647.',
      'ERR_OVERFLOW',
    ],
    [
      `${HEADER} g (int8[N] x = {1}) => () {}`,
      'Line 1, column 55: the type of values needs dims that are numbers.',
    ],
    [
      `${HEADER} g (x = {1}) => () {}`,
      'Line 1, column 47: values need the type of a tensor before their name.',
    ],
    [
      `${HEADER} g (float[9] x = ...) => () {}`,
      'Line 1, column 60: the values are omitted ("..."); the text is no whole model.',
      'ERR_NO_DATA',
    ],
    [`${HEADER} g (seq(float4) x) => () {}`, 'Line 1, column 48: unknown type "float4".'],
    [`${HEADER} g (map(seq, float) x) => () {}`, 'Line 1, column 48: unknown element type "seq".'],
    [
      `${HEADER} g () => () { y = A <a = []> () }`,
      'Line 1, column 65: the type of an empty list is unknown; write "name: type = []".',
    ],
    [
      `${HEADER} g () => () { y = A <a: int = [1]> () }`,
      'Line 1, column 70: an attribute of type int takes one value.',
    ],
    [
      `${HEADER} g () => () { y = A <a: ints = 1> () }`,
      'Line 1, column 71: the value is int; the attribute takes ints.',
    ],
    [
      `${HEADER} g () => () { y = A <a: ints = [1, 2.5]> () }`,
      'Line 1, column 75: the value is float; the attribute takes int.',
    ],
    [
      `${HEADER} g () => () { y = A <a: number = 1> () }`,
      'Line 1, column 64: unknown attribute type "number".',
    ],
    [`${HEADER} g () => () { y = A <a = 1 () }`, 'Line 1, column 67: ">" was expected; "() }" was found.'],
    [`${HEADER} g () => () {`, 'Line 1, column 53: "=" was expected; the text ends.'],
  ])('refuses %s', async (source, message, code = 'ERR_HEADER') => {
    await expect(opened(source)).rejects.toThrow(expect.objectContaining({ code, message }))
    const [finding] = await check(Buffer.from(source))
    expect(finding).toMatchObject({ severity: 'error', code, message })
  })
})

describe('the text form of protobuf', () => {
  const start = 'ir_version: 9 graph {'
  it('reads all spellings of its specification', async () => {
    const model = await opened(
      `# proto-file: onnx.proto
      ir_version: 0x9, producer_name: "a" 'b\\n\\x41\\101\\u00e9\\U0001F600\\'' # text
      opset_import: [ { domain: "" version: 025 }; , { domain: "own" version: 1 } ]
      graph: < name: 'g' node { op_type: "A" attribute { name: "k" type: INTS ints: [1, -2] ints: 3 }
        attribute { name: "f" type: 1 f: -1.5e1f } attribute { name: "i" type: FLOAT f: -Infinity } } >`.replace(
        '; ,',
        ',',
      ),
    )
    expect(model.producerName).toBe("ab\nAAé😀'")
    expect([...model.opsetImports]).toEqual([
      ['', 21],
      ['own', 1],
    ])
    expect(model.graph.nodes[0]!.attributes.map(({ value }) => value)).toEqual([
      [1, -2, 3],
      -15,
      Number.NEGATIVE_INFINITY,
    ])
  })

  it.each<[string, string, string?]>([
    ['ir_version: 9 none: 1', 'Line 1, column 15: ModelProto has no field "none".'],
    [
      'ir_version: 9 ir_version: 9',
      'Line 1, column 15: the field "ir_version" of ModelProto is given twice.',
    ],
    ['ir_version: nine', 'Line 1, column 13: "nine" is no value of the field "ir_version".'],
    ['ir_version: 09', 'Line 1, column 13: "09" is no value of the field "ir_version".'],
    [
      'ir_version: 9223372036854775808',
      'Line 1, column 13: 9223372036854775808 is not from -9223372036854775808 to 9223372036854775807.',
      'ERR_OVERFLOW',
    ],
    [
      `${start}\n node { attribute { type: FLOATY } } }`,
      'Line 2, column 27: "FLOATY" is no value of the field "type".',
    ],
    [`${start} name: "\\xff" }`, 'Line 1, column 36: the text before this is not UTF-8.'],
    [`${start} name: "\\q" }`, 'Line 1, column 29: "\\\\q" is no escape of a text.'],
    [`${start} name: "\\400" }`, 'Line 1, column 29: "\\\\400" is no escape of a text.'],
    [`${start} name: "\\ud800" }`, 'Line 1, column 29: "\\\\ud800" is no escape of a text.'],
    [`${start} name "g" }`, 'Line 1, column 28: ":" was expected; "\\"g\\" }" was found.'],
    [
      `${start} [ext.name]: 1 }`,
      'Line 1, column 23: the name of a field was expected; "[ext.name]: 1 }" was found.',
    ],
    [
      `${start} input { type { tensor_type {} map_type {} } } }`,
      'Line 1, column 53: the field "map_type" of TypeProto or another of its oneof is given twice.',
    ],
    [`${start} name: "g"`, 'Line 1, column 32: the name of a field was expected; the text ends.'],
  ])('refuses %s', async (source, message, code = 'ERR_HEADER') => {
    await expect(opened(source)).rejects.toThrow(expect.objectContaining({ code, message }))
  })
})

describe('the JSON form of protobuf', () => {
  it('reads names of both kinds, numbers as texts and null', async () => {
    const model =
      await opened(`\uFEFF{"irVersion": "9", "producer_name": "a\\u00e9\\n", "domain": null, "modelVersion": 3.0,
      "opsetImport": [{"domain": "", "version": "21"}], "graph": {"node": [{"opType": "A", "attribute": [
      {"name": "f", "type": "FLOAT", "f": "-Infinity"}, {"name": "g", "type": 1, "f": 1e-3},
      {"name": "s", "type": "STRING", "s": "-_8="}]}]}}`)
    expect([model.irVersion, model.producerName, model.modelVersion]).toEqual([9, 'aé\n', 3])
    const values = model.graph.nodes[0]!.attributes.map(({ value }) => value)
    expect(values).toEqual([Number.NEGATIVE_INFINITY, Math.fround(1e-3), Uint8Array.of(251, 255)])
  })

  it.each<[string, string, string?]>([
    ['{"irVersion": 9, "none": 1}', 'Line 1, column 18: ModelProto has no field "none".'],
    [
      '{"irVersion": 9, "ir_version": 9}',
      'Line 1, column 18: the field "ir_version" of ModelProto is given twice.',
    ],
    ['{"irVersion": true}', 'Line 1, column 2: the field "irVersion" of ModelProto takes no such value.'],
    ['{"irVersion": 9.5}', 'Line 1, column 15: an integer was expected; "9.5}" was found.'],
    ['{"irVersion": 9,}', 'Line 1, column 17: a quoted text was expected; "}" was found.'],
    ['{"irVersion": 9} {', 'Line 1, column 18: the end of the text was expected; "{" was found.'],
    ['{"graph": {"node": {}}}', 'Line 1, column 20: "[" was expected; "{}}}" was found.'],
    [
      '{"graph": {"name": "\\q"}}',
      'Line 1, column 20: the text has a control character or an unknown escape.',
    ],
    ['{"graph": {"initializer": [{"rawData": "a b"}]}}', 'Line 1, column 40: bytes are not base64.'],
    ['{"graph": {"initializer": [{"floatData": ["1x"]}]}}', 'Line 1, column 43: "1x" is no number.'],
  ])('refuses %s', async (source, message, code = 'ERR_HEADER') => {
    await expect(opened(source)).rejects.toThrow(expect.objectContaining({ code, message }))
  })
})

describe('hostile text', () => {
  const repeated = (open: string, count: number, close: string) => open.repeat(count) + close.repeat(count)
  const deep: Readonly<Record<Kind, string>> = {
    onnxtxt: `${HEADER} ${'g () => () { y = If <then_branch = '.repeat(5000)}`,
    textproto: `graph { ${repeated('node { attribute { g { ', 5000, '}}}')} }`,
    json: `{"graph": {${'"node": [{"attribute": [{"g": {'.repeat(5000)}`,
  }
  it.each(KINDS)('that nests messages is refused: %s', async (kind) => {
    const refused = expect.objectContaining({
      code: 'ERR_LIMIT',
      message: expect.stringContaining('limits.depth, which is 100'),
    })
    await expect(opened(deep[kind])).rejects.toThrow(refused)
    const few = deep[kind].replace(/5000/g, '')
    await expect(open(Buffer.from(few), { limits: { depth: 20 } })).rejects.toThrow(
      /limits\.depth, which is 20/,
    )
  })

  it('with nested types is refused', async () => {
    await expect(opened(`${HEADER} g (${'seq('.repeat(5000)}`)).rejects.toThrow(/limits\.depth/)
    await expect(
      opened(`${HEADER} g () => () { y = A <a: type_proto = ${'seq('.repeat(5000)}`),
    ).rejects.toThrow(/limits\.depth/)
  })

  it('that is no UTF-8 is refused', async () => {
    const bytes = Buffer.concat([
      Buffer.from('<ir_version: 9, domain: "'),
      Buffer.of(0xff),
      Buffer.from('">'),
    ])
    await expect(open(bytes)).rejects.toThrow('The text is not valid UTF-8.')
  })

  it('of quotes, escapes and spaces is read in linear time', async () => {
    const long = `${'\\"'.repeat(200_000)}${' #\n'.repeat(100_000)}`
    const start = process.cpuUsage()
    const model = await opened(`${HEADER}${' #\n'.repeat(200_000)} g () => () { y = A <s = "${long}"> () }`)
    expect(model.graph.nodes[0]!.attribute('s')!.text.length).toBe(500_000)
    expect(process.cpuUsage(start).user).toBeLessThan(5_000_000)
  })
})
