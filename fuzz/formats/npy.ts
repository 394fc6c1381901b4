/** npy by its grammar (magic, version, a Python literal, data) and npz: a ZIP archive of them, stored and deflated. */
import { crc32, deflateRawSync } from 'node:zlib'
import { damaged, joined, le, type Random } from '../random.js'

const DESCRS: readonly (readonly [string, number])[] = [
  ...([
    ['<f4', 4],
    ['<f8', 8],
    ['>f4', 4],
    ['>i8', 8],
    ['<i2', 2],
    ['|b1', 1],
    ['|u1', 1],
    ['|i1', 1],
    ['<f2', 2],
  ] as const),
  ...([
    ['<c8', 8],
    ['<c16', 16],
    ['>c16', 16],
    ['<U3', 12],
    ['>U2', 8],
    ['|S4', 4],
    ['|S0', 0],
    ['<U0', 0],
    ['|V2', 2],
  ] as const),
  ...([
    ['|O', 8],
    ['<M8[ns]', 8],
    ['|S2147483647', 4],
    ['<U99999999', 4],
    ['<f16', 16],
    ['=f4', 4],
    ['<f3', 3],
  ] as const),
]

export function npy(random: Random): Uint8Array {
  const [descr, width] = random.pick(DESCRS)
  const shape = random.times(3, () => (random.once(15) ? random.number() : BigInt(random.below(4))))
  const fields = [
    `'descr': ${random.once(30) ? "[('a', '<f4')]" : quoted(random, descr)}`,
    `'fortran_order': ${random.once(20) ? random.pick(['1', 'None', 'true']) : random.pick(['True', 'False'])}`,
    `'shape': (${shape.map((dim) => `${dim}${random.once(20) ? 'L' : ''}`).join(', ')}${shape.length === 1 || random.once(10) ? ',' : ''})`,
  ]
  if (random.once(20)) fields.push(random.pick(fields))
  if (random.once(20)) fields.splice(random.below(fields.length), 1)
  if (random.once(4)) fields.reverse()
  const version = random.once(20) ? random.below(5) : 1 + random.below(3)
  const lengthBytes = version === 1 ? 2 : 4
  let header = `{${fields.join(', ')}${random.once(2) ? ', ' : ''}}`
  const aligned = (64 - ((8 + lengthBytes + header.length + 1) % 64)) % 64
  header += ' '.repeat(random.once(5) ? random.below(80) : aligned)
  header += random.once(20) ? random.pick(['', '\r\n', '\0\n', '#x\n']) : '\n'
  const bytes = Buffer.from(header, version === 3 ? 'utf8' : 'latin1')
  const size =
    Number(
      BigInt.asUintN(
        8,
        shape.reduce((product, dim) => product * dim, 1n),
      ),
    ) * width
  const length = random.once(25) ? random.number(200) : bytes.length
  const data = Uint8Array.from({ length: random.once(15) ? random.below(size + 9) : size }, () =>
    random.below(random.pick([2, 128, 256])),
  )
  return joined(
    [0x93],
    Buffer.from('NUMPY'),
    [version, random.once(30) ? 1 : 0],
    le(length, lengthBytes),
    bytes,
    data,
  )
}

function quoted(random: Random, text: string): string {
  return random.once(6) ? `"${text}"` : random.once(30) ? `b'${text}'` : `'${text}'`
}

interface Member {
  readonly local: Uint8Array
  readonly central: (offset: number) => Uint8Array
}

export function npz(random: Random): Uint8Array {
  const members = random.times(4, () => ({
    name: `${random.name()}${random.once(12) ? '' : '.npy'}`,
    content: random.once(12) ? random.bytes(40) : damaged(random, npy(random)),
  }))
  return zip(random, members)
}

/** An archive in every form that writers make, some fields wrong: `care` times as seldom as in archives of arrays. */
export function zip(
  random: Random,
  contents: readonly { readonly name: string; readonly content: Uint8Array }[],
  care = 1,
): Uint8Array {
  const members = contents.map(({ name, content }) => member(random, Buffer.from(name), content, care))
  const offsets: number[] = []
  const locals: Uint8Array[] = []
  let at = 0
  for (const { local } of members) {
    const gap = random.bytes(random.once(15 * care) ? 8 : 0)
    offsets.push(at + gap.length)
    locals.push(gap, local)
    at += gap.length + local.length
  }
  if (random.once(10 * care) && offsets.length > 1)
    offsets[random.below(offsets.length)] = random.pick(offsets)
  const directory = joined(...members.map(({ central }, index) => central(offsets[index]!)))
  const count = random.once(20 * care) ? random.number(8) : BigInt(members.length)
  const isLong = random.once(5)
  const start = random.once(25 * care) ? random.number(200) : BigInt(at)
  const size = random.once(25 * care) ? random.number(200) : BigInt(directory.length)
  const long = isLong
    ? joined(
        ...[
          le(0x06064b50, 4),
          le(44, 8),
          le(45, 2),
          le(45, 2),
          le(0, 4),
          le(0, 4),
          le(count, 8),
          le(count, 8),
          le(size, 8),
          le(start, 8),
        ],
        ...[le(0x07064b50, 4), le(0, 4), le(at + directory.length, 8), le(1, 4)],
      )
    : new Uint8Array(0)
  const escaped = (value: bigint, width: number) =>
    isLong ? le(2n ** BigInt(8 * width) - 1n, width) : le(value, width)
  const comment = random.bytes(random.once(10 * care) ? 8 : 0)
  const end = joined(
    le(0x06054b50, 4),
    le(0, 4),
    escaped(count, 2),
    escaped(count, 2),
    escaped(size, 4),
    escaped(start, 4),
    le(comment.length, 2),
    comment,
  )
  return joined(...locals, directory, long, end)
}

function member(random: Random, name: Uint8Array, content: Uint8Array, care: number): Member {
  const isDeflated = random.once(3)
  const data = isDeflated ? deflateRawSync(content) : content
  const stored = random.once(15 * care) ? damaged(random, data) : data
  const hasDescriptor = random.once(8)
  const flags = (hasDescriptor ? 8 : 0) | (random.once(2) ? 0x800 : 0) | (random.once(25 * care) ? 1 : 0)
  const method = random.once(25 * care) ? random.below(20) : isDeflated ? 8 : 0
  const crc = random.once(20 * care) ? random.number() : BigInt(crc32(content))
  const sizes = (isHidden: boolean) =>
    isHidden
      ? new Uint8Array(12)
      : joined(
          le(crc, 4),
          le(stored.length, 4),
          le(random.once(25 * care) ? random.number(500) : content.length, 4),
        )
  const extra = random.once(6)
    ? joined(le(1, 2), le(16, 2), le(content.length, 8), le(stored.length, 8))
    : random.bytes(random.once(20 * care) ? 12 : 0)
  const descriptor = hasDescriptor
    ? joined(random.once(2) ? le(0x08074b50, 4) : [], sizes(false))
    : new Uint8Array(0)
  const localName = random.once(25 * care) ? Buffer.from(random.name()) : name
  const local = joined(
    le(0x04034b50, 4),
    le(20, 2),
    le(flags, 2),
    le(method, 2),
    le(0, 4),
    sizes(hasDescriptor),
    le(localName.length, 2),
    le(extra.length, 2),
    localName,
    extra,
    stored,
    descriptor,
  )
  const central = (offset: number) =>
    joined(
      le(0x02014b50, 4),
      le(20, 2),
      le(20, 2),
      le(flags, 2),
      le(method, 2),
      le(0, 4),
      sizes(false),
      le(name.length, 2),
      le(extra.length, 2),
      le(0, 6),
      le(0, 4),
      le(random.once(25 * care) ? random.number(300) : offset, 4),
      name,
      extra,
    )
  return { local, central }
}
