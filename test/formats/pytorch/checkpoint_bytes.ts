/** Builds checkpoints opcode by opcode, independently of the reader under test; any part can be falsified. */
import { type MemberFields, zipBytes } from '../npy/zip_bytes.js'

/** Bytes of an opcode and its argument. */
export type Part = Uint8Array

const latin = (letters: string): Part => Buffer.from(letters, 'latin1')

export function join(...parts: readonly Part[]): Part {
  return new Uint8Array(Buffer.concat(parts))
}

export const NONE = latin('N')
export const TRUE = latin('\x88')
export const FALSE = latin('\x89')

export function text(value: string): Part {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(bytes.length)
  return join(latin('X'), length, bytes)
}

/** LONG1 takes any whole number. */
export function int(value: number | bigint): Part {
  const bytes = Buffer.alloc(9)
  bytes.writeBigInt64LE(BigInt.asIntN(64, BigInt(value)))
  bytes[8] = BigInt(value) < 0n ? 0xff : 0
  return join(latin('\x8a\x09'), bytes)
}

export function double(value: number): Part {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleBE(value)
  return join(latin('G'), bytes)
}

export function tuple(...items: readonly Part[]): Part {
  return join(latin('('), ...items, latin('t'))
}

export function list(...items: readonly Part[]): Part {
  return join(latin(']('), ...items, latin('e'))
}

export function dict(...entries: readonly (readonly [Part, Part])[]): Part {
  return join(latin('}('), ...entries.flat(), latin('u'))
}

export function global(module: string, name: string): Part {
  return latin(`c${module}\n${name}\n`)
}

export function call(called: Part, ...args: readonly Part[]): Part {
  return join(called, tuple(...args), latin('R'))
}

/** Puts the value on the stack into the memo, or takes one from there. */
export const put = (index: number): Part => Uint8Array.of(0x71, index)
export const get = (index: number): Part => Uint8Array.of(0x68, index)

export function pickle(value: Part): Part {
  return join(latin('\x80\x02'), value, latin('.'))
}

export interface TensorFields {
  readonly storageClass?: string
  readonly key?: string
  /** Elements of the storage. */
  readonly elements?: number
  readonly offset?: number | bigint
  readonly shape?: readonly (number | bigint)[]
  readonly strides?: readonly (number | bigint)[]
  readonly requiresGrad?: boolean
}

export function storage({ storageClass = 'FloatStorage', key = '0', elements = 6 }: TensorFields): Part {
  const id = tuple(text('storage'), global('torch', storageClass), text(key), text('cpu'), int(elements))
  return join(id, latin('Q'))
}

export function tensor(fields: TensorFields = {}): Part {
  const { offset = 0, shape = [2, 3], strides = [3, 1], requiresGrad = false } = fields
  const hooks = call(global('collections', 'OrderedDict'))
  return call(
    global('torch._utils', '_rebuild_tensor_v2'),
    storage(fields),
    int(offset),
    tuple(...shape.map(int)),
    tuple(...strides.map(int)),
    requiresGrad ? TRUE : FALSE,
    hooks,
  )
}

export interface CheckpointFields {
  readonly pickle: Part
  /** By key. Default: storage `0` of the floats 0 to 5. */
  readonly storages?: Readonly<Record<string, Uint8Array>>
  readonly folder?: string
  /** Compression method: 0 or 8. */
  readonly method?: number
  readonly byteOrder?: string
  readonly more?: readonly MemberFields[]
}

export const FLOATS = new Uint8Array(Float32Array.from({ length: 6 }, (_, at) => at).buffer)

export function checkpoint({
  pickle: content,
  storages = { 0: FLOATS },
  folder = 'archive',
  method = 0,
  byteOrder = 'little',
  more = [],
}: CheckpointFields): Uint8Array {
  const members = [
    { name: 'data.pkl', content },
    { name: 'byteorder', content: Buffer.from(byteOrder) },
    ...Object.entries(storages).map(([key, bytes]) => ({ name: `data/${key}`, content: bytes })),
    { name: 'version', content: Buffer.from('3\n') },
  ]
  return zipBytes([
    ...members.map(({ name, content: bytes }) => ({ name: `${folder}/${name}`, content: bytes, method })),
    ...more,
  ])
}

/** The stream of torch before 1.6. */
export function legacy(
  object: Part,
  storages: Readonly<Record<string, readonly [elements: number, Uint8Array]>>,
): Uint8Array {
  const number = latin('\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19')
  const system = dict([text('little_endian'), TRUE])
  const keys = list(...Object.keys(storages).map(text))
  const data = Object.values(storages).map(([elements, bytes]) => {
    const count = Buffer.alloc(8)
    count.writeBigUInt64LE(BigInt(elements))
    return join(count, bytes)
  })
  return join(pickle(number), pickle(int(1001)), pickle(system), object, pickle(keys), ...data)
}
