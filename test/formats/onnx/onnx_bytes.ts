/** Builds ONNX messages byte by byte, independently of the writer under test. */
import { createHash } from 'node:crypto'
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { ByteSource } from '../../../lib/bytes/source.js'
import { type Level, TileworkError } from '../../../lib/errors.js'
import type { Limits, ReadOptions, WritePlan } from '../../../lib/formats/format.js'

export type Bytes = Uint8Array

export function join(...parts: readonly (Bytes | readonly number[])[]): Bytes {
  return new Uint8Array(Buffer.concat(parts.map((part) => Uint8Array.from(part))))
}

/** A varint; negative numbers have ten bytes. */
export function varint(value: number | bigint): Bytes {
  const bytes: number[] = []
  let remaining = BigInt.asUintN(64, BigInt(value))
  for (; remaining > 127n; remaining >>= 7n) bytes.push(Number(remaining & 127n) | 128)
  bytes.push(Number(remaining))
  return Uint8Array.from(bytes)
}

/** A varint field. */
export const int = (number: number, value: number | bigint): Bytes => join(varint(number << 3), varint(value))

/** A length-delimited field. */
export function field(number: number, value: string | Bytes | readonly number[]): Bytes {
  const bytes = typeof value === 'string' ? Buffer.from(value) : Uint8Array.from(value)
  return join(varint((number << 3) | 2), varint(bytes.length), bytes)
}

/** A fixed32 or fixed64 field. */
export const fixed = (number: number, value: Bytes): Bytes =>
  join(varint((number << 3) | (value.length === 4 ? 5 : 1)), value)

export const entry = (key: string, value: string): Bytes => join(field(1, key), field(2, value))

export interface TensorText {
  readonly dims?: readonly (number | bigint)[]
  readonly type?: number
  readonly name?: string
  /** Raw fields of values. */
  readonly values?: Bytes
  /** Entries of external_data; sets data_location to EXTERNAL. */
  readonly external?: Readonly<Record<string, string>>
}

export const raw = (...bytes: number[]): Bytes => field(9, bytes)

/** A TensorProto. */
export function tensorProto({ dims = [], type = 1, name, values, external }: TensorText): Bytes {
  const outside = Object.entries(external ?? {}).map(([key, value]) => field(13, entry(key, value)))
  return join(
    ...dims.map((extent) => int(1, extent)),
    int(2, type),
    values ?? [],
    name === undefined ? [] : field(8, name),
    ...outside,
    external ? int(14, 1) : [],
  )
}

export const sparseProto = (values: Bytes, indices: Bytes | undefined, dims: readonly number[]): Bytes =>
  join(field(1, values), indices ? field(2, indices) : [], ...dims.map((extent) => int(3, extent)))

export interface NodeText {
  readonly inputs?: readonly string[]
  readonly outputs?: readonly string[]
  readonly attributes?: readonly Bytes[]
  readonly op?: string
  /** An operator of the domain `own` takes anything; its model imports it by `OWN_OPSET`. */
  readonly domain?: 'own'
}

export const nodeProto = ({
  inputs = [],
  outputs = [],
  attributes = [],
  op = 'Identity',
  domain,
}: NodeText): Bytes =>
  join(
    ...inputs.map((name) => field(1, name)),
    ...outputs.map((name) => field(2, name)),
    field(4, op),
    ...attributes.map((attribute) => field(5, attribute)),
    domain === undefined ? [] : field(7, domain),
  )

export interface GraphText {
  readonly nodes?: readonly Bytes[]
  readonly initializers?: readonly Bytes[]
  readonly sparse?: readonly Bytes[]
  readonly inputs?: readonly string[]
  readonly outputs?: readonly string[]
}

/** A ValueInfoProto of a float32 scalar. */
const valueProto = (name: string): Bytes =>
  join(field(1, name), field(2, field(1, join(int(1, 1), field(2, '')))))

export const graphProto = (graph: GraphText): Bytes =>
  join(
    ...(graph.nodes ?? []).map((node) => field(1, node)),
    field(2, 'g'),
    ...(graph.initializers ?? []).map((tensor) => field(5, tensor)),
    ...(graph.inputs ?? []).map((name) => field(11, valueProto(name))),
    ...(graph.outputs ?? []).map((name) => field(12, valueProto(name))),
    ...(graph.sparse ?? []).map((tensor) => field(15, tensor)),
  )

/** A ModelProto of IR version 8. */
export const modelProto = (graph: GraphText | Bytes, ...rest: readonly Bytes[]): Bytes =>
  join(
    int(1, 8),
    field(7, graph instanceof Uint8Array ? graph : graphProto(graph)),
    field(8, int(2, 17)),
    ...rest,
  )

/** A field of ModelProto that imports the domain `own`. */
export const OWN_OPSET: Bytes = field(8, join(field(1, 'own'), int(2, 1)))

/** A folder in memory: bytes by file name. */
export type Folder = Record<string, Uint8Array>

export function readOptions(level: Level = 'strict', folder: Folder = {}, limits: Limits = {}): ReadOptions {
  const sibling = async (name: string): Promise<ByteSource> => {
    if (name.includes('..')) throw new TileworkError('ERR_PATH_ESCAPE', `${name} leads out of the folder.`)
    if (Object.hasOwn(folder, name)) return new MemorySource(folder[name]!)
    throw new TileworkError('ERR_IO', `${name.slice(0, 80)}: ENOENT.`, { cause: { code: 'ENOENT' } })
  }
  return { level, limits, sibling }
}

/** The bytes of a planned file. */
export async function bytesOfPlan(plan: WritePlan): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for (const segment of plan.segments) {
    if (segment.kind === 'bytes') chunks.push(segment.bytes)
    else if (segment.kind === 'tensor') chunks.push(await segment.tensor.bytes())
    else if (segment.kind === 'range') chunks.push(await segment.source.read(segment.start, segment.end))
    else chunks.push(await segment.compute(undefined))
  }
  const bytes = new Uint8Array(Buffer.concat(chunks))
  if (bytes.byteLength !== plan.byteLength) {
    throw new Error(`the plan promises ${plan.byteLength} bytes and gives ${bytes.byteLength}`)
  }
  return bytes
}

export const sha1 = (bytes: Uint8Array): string => createHash('sha1').update(bytes).digest('hex')
