/** Real files: every byte has an owner, a rewrite is exact, and a canonical rewrite changes only uninitialised bytes. */
import { describe, expect, it } from 'vitest'
import { coverageOf } from '../../../lib/formats/tmfile/rules/coverage.js'
import { STRUCT_LAYOUTS, type StructName } from '../../../lib/formats/tmfile/schema.js'
import { check, type DenseTensor, open, serialize } from '../../../lib/index.js'
import { planModel } from '../../../lib/models/tmfile/document/write.js'
import type { TmfileNode } from '../../../lib/tmfile.js'
import {
  hasThirdPartyFiles,
  THIRD_PARTY,
  thirdPartyBytes,
  thirdPartyFiles,
  thirdPartyPath,
} from '../../shared_fixtures.js'
import { recordsOf } from './tmfile_bytes.js'

/** Counts by an independent reader: `[nodes, tensors, buffers]` and operators by number. */
function countsOf(bytes: Uint8Array): { lists: number[]; operators: Record<number, number> } {
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const word = (at: number): number => view.getUint32(at, true)
  const graph = word(word(word(8) + 8) + 4)
  const [nodes, tensors, buffers] = [20, 24, 28].map((field) => word(graph + field)) as [
    number,
    number,
    number,
  ]
  const operators: Record<number, number> = {}
  for (let at = 0; at < word(nodes); at++) {
    const operator = word(word(word(nodes + 4 + 4 * at) + 12) + 4)
    operators[operator] = (operators[operator] ?? 0) + 1
  }
  return { lists: [word(nodes), word(tensors), word(buffers)], operators }
}

/** Fields that the reference writer leaves uninitialised. */
const UNSET_FIELDS = [
  'header padding',
  'node padding',
  'quantization width',
  'subgraph devices',
  'tensor layout',
  'params bias',
  'params shift',
  'params power',
  'params scale',
  'params caffe_flavor',
  'params img_size',
  'params num_priors',
  'params padding',
]

interface FieldRange {
  readonly name: string
  readonly offset: number
  readonly byteLength: number
}

/** The field of a struct, `padding` between fields: `tensor layout` for a byte of `tensors[3]`. */
function fieldAt(path: string, offset: number, block: readonly FieldRange[]): string {
  const struct = structOf(path)
  const fields = struct === 'params' ? block : fieldsOf(struct)
  const field = fields.find((each) => each.offset <= offset && offset < each.offset + each.byteLength)
  return `${struct} ${field?.name ?? 'padding'}`
}

function fieldsOf(struct: StructName): FieldRange[] {
  return STRUCT_LAYOUTS[struct].fields.map(({ name, type, offset }) => {
    return { name, offset, byteLength: type === 'u8' ? 1 : type === 'u16' ? 2 : 4 }
  })
}

function structOf(path: string): StructName | 'params' {
  if (path.endsWith('.params')) return 'params'
  if (/\.quantization\[\d+\]$/.test(path)) return 'quantization'
  const name = /^(header|subgraph|node|tensor)s?(\[\d+\])?$/.exec(path)?.[1]
  if (!name) throw new Error(`A byte of ${path} changed, and no field of it may.`)
  return name as StructName
}

describe.each(thirdPartyFiles('tmfile').map(({ path }) => [path]))('%s', THIRD_PARTY, (name) => {
  const bytes = hasThirdPartyFiles ? thirdPartyBytes(name) : new Uint8Array(0)

  it('has no unowned byte', async () => {
    const { unowned, overlaps, objects, paddingBytes } = coverageOf(await recordsOf(bytes))
    expect({ unowned, overlaps }).toEqual({ unowned: [], overlaps: [] })
    const owned = objects.reduce((sum, { start, end }) => sum + end - start, 0)
    expect(owned + paddingBytes).toBe(bytes.length)
  })

  it('has the counts that an independent reader finds', async () => {
    const { tmfile: model, tensors } = await open(bytes)
    const { nodes, buffers } = model!.graph
    const operators: Record<number, number> = {}
    for (const { operatorNumber } of nodes) operators[operatorNumber] = (operators[operatorNumber] ?? 0) + 1
    expect({ lists: [nodes.length, tensors.length, buffers.length], operators }).toEqual(countsOf(bytes))
  })

  it('is detected by its content, and breaks no rule', async () => {
    expect((await open(bytes)).format).toBe('tmfile')
    const findings = await check(bytes, { level: 'strict' })
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  })

  it('is rewritten byte for byte from its objects', async () => {
    const file = await open(bytes)
    expect(Buffer.compare(await serialize(file), bytes)).toBe(0)
    const { segments } = await planModel(file.tmfile!)
    const copied = [...segments].reduce(
      (sum, segment) => sum + (segment.kind === 'range' ? segment.end - segment.start : 0),
      0,
    )
    const weights = file.tmfile!.graph.buffers.reduce(
      (sum, { data, byteLength }) => sum + (data ? byteLength : 0),
      0,
    )
    expect(copied).toBe(weights)
  })

  it('changes only uninitialised bytes in canonical form', async () => {
    const file = await open(bytes)
    const canonical = await serialize(file, { mode: 'canonical' })
    expect(canonical.length).toBe(bytes.length)
    const records = await recordsOf(bytes)
    const { objects } = coverageOf(records)
    const changed = new Set<string>()
    for (const { path, start, end } of objects) {
      for (let at = start; at < end; at++) {
        if (bytes[at] === canonical[at]) continue
        const node = records.graph.nodes.list[Number(/^nodes\[(\d+)\]/.exec(path)?.[1] ?? -1)]
        changed.add(fieldAt(path, at - start, node?.operator.block?.form?.fields ?? []))
      }
    }
    expect([...changed].filter((field) => !UNSET_FIELDS.includes(field))).toEqual([])
    expect(Buffer.compare(await serialize(await open(canonical), { mode: 'canonical' }), canonical)).toBe(0)
  })

  it('has the same graph and no older struct after an upgrade', async () => {
    const file = await open(bytes)
    const upgraded = await open(await serialize(file, { mode: 'upgrade' }))
    expect(upgraded.findings.filter(({ code }) => code === 'OLDER_PARAMETERS')).toEqual([])
    const outline = (nodes: readonly TmfileNode[]) =>
      nodes.map(({ name, operator, params, inputs, outputs }) => {
        return {
          name,
          operator,
          params,
          ends: [inputs, outputs].map((list) => list.map((tensor) => tensor.name)),
        }
      })
    const unset = (nodes: ReturnType<typeof outline>) =>
      nodes.map((node) => ({ ...node, params: withoutUnset(node.operator, node.params) }))
    expect(unset(outline(upgraded.tmfile!.graph.nodes))).toEqual(unset(outline(file.tmfile!.graph.nodes)))
    for (const [index, one] of [...file.tensors].entries()) {
      const other = upgraded.tensors.at(index) as DenseTensor
      expect([other.name, other.dtype, other.shape, other.hasData]).toEqual([
        one.name,
        one.dtype,
        one.shape,
        one.hasData,
      ])
      if (one.hasData) expect(Buffer.compare(await other.bytes(), await (one as DenseTensor).bytes())).toBe(0)
    }
  })
})

/** Canonical files have 0 for uninitialised parameters. */
function withoutUnset(operator: string, params: object): object {
  const unset: Record<string, readonly string[]> = {
    Eltwise: ['shift', 'power', 'scale', 'caffe_flavor'],
    LRN: ['bias'],
    PriorBox: ['img_size', 'num_priors'],
  }
  return Object.fromEntries(Object.entries(params).filter(([name]) => !unset[operator]?.includes(name)))
}

describe('files of older writers', THIRD_PARTY, () => {
  it('short blocks of 2020 have defaults', async () => {
    const { tmfile: model, findings } = await open(thirdPartyPath('tmfile/retinaface_benchmark.tmfile'))
    const nodes = model!.graph.nodes
    const reshapes = nodes.filter(({ operator }) => operator === 'Reshape')
    expect(reshapes.length).toBeGreaterThan(0)
    for (const { params } of reshapes)
      expect(params).toMatchObject({ is_onnx: 0, is_mxnet: 1, re_shape: [0, expect.any(Number), -1, 0] })
    const named = findings.filter(({ code }) => code === 'OLDER_PARAMETERS').map(({ message }) => message)
    expect(named.some((message) => message.includes('the default is assumed for is_onnx'))).toBe(true)
  })

  it('reads two device subgraphs where the subgraph vector stores one entry', async () => {
    const { tmfile: model } = await open(thirdPartyPath('tmfile/FaceLandmark2d.tmfile'))
    const { devices, nodes } = model!.graph
    expect(devices).toHaveLength(2)
    expect(devices!.map(({ id, name }) => [id, name])).toEqual([
      [0, 'cpu_dev'],
      [1, 'cpu_dev'],
    ])
    expect(devices!.flatMap((device) => device.nodes).every((each) => nodes.includes(each))).toBe(true)
  })

  it('weights without data have a size', async () => {
    const { tensors } = await open(thirdPartyPath('tmfile/mobilenet_benchmark.tmfile'))
    const constants = [...tensors].filter(
      ({ metadata }) => metadata.get('tmfile.role') === 'constant',
    ) as DenseTensor[]
    expect(constants.length).toBeGreaterThan(50)
    for (const constant of constants) {
      expect(constant.hasData).toBe(false)
      expect(constant.storage.byteLength).toBe(4 * constant.size)
      await expect(constant.bytes()).rejects.toMatchObject({ code: 'ERR_NO_DATA' })
    }
  })

  it('quantized tensors have quantization parameters', async () => {
    const { tmfile: model } = await open(thirdPartyPath('tmfile/from_onnx_UINT8.tmfile'))
    const quantized = model!.graph.tensors.filter(({ dtype }) => dtype === 'uint8')
    expect(quantized.length).toBeGreaterThan(100)
    for (const { quantization } of quantized) expect(quantization!.scales).toHaveLength(1)
  })

  it('links match the lists of the nodes', async () => {
    const { tmfile: model } = await open(thirdPartyPath('tmfile/mnist.tmfile'))
    const links = model!.links()
    for (const node of model!.graph.nodes) {
      for (const tensor of node.outputs) expect(links.get(tensor)!.producer).toBe(node)
      for (const tensor of node.inputs) expect(links.get(tensor)!.consumers).toContain(node)
    }
  })
})
